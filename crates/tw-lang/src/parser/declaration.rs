//! Types, tilings and inputs.

use tw_ir::Result;

use super::Parser;
use crate::ast::{Name, StmtKind, Tile, TileAxis, TypeExpr};
use crate::token::{Symbol, TokenKind};

impl<'a> Parser<'a> {
    /// `input A: f64[n] = read("a.npy") tile(100)`, with a type, a file or both.
    pub(super) fn input(&mut self) -> Result<StmtKind<'a>> {
        self.advance()?;
        let name = self.name("the name of an input")?;
        let ty = if self.accept(Symbol::Colon)? { Some(self.type_expr()?) } else { None };
        let path = if self.accept(Symbol::Assign)? { Some(self.file()?) } else { None };
        if ty.is_none() && path.is_none() {
            let error = self.unexpected("`:` and a type, or `=` and a file name");
            return Err(
                error.help(format!("for example `input {0}: f64[n, n]` or `input {0} = \"{0}.npy\"`", name.text))
            );
        }
        let tile = match self.current.kind {
            TokenKind::Name("tile") => Some(self.tile()?),
            _ => None,
        };
        Ok(StmtKind::Input { name, ty, path, tile })
    }

    /// `read("a.npy")`, or the name of the file alone.
    fn file(&mut self) -> Result<Name<'a>> {
        if !matches!(self.current.kind, TokenKind::Name("read")) {
            return self.path();
        }
        self.advance()?;
        let open = self.expect(Symbol::OpenParen)?;
        let path = self.path()?;
        self.close(Symbol::CloseParen, open)?;
        Ok(path)
    }

    /// `f64[n, m]`; without brackets a scalar.
    pub(super) fn type_expr(&mut self) -> Result<TypeExpr<'a>> {
        let dtype = self.name("the name of an element type")?;
        let mut extents = Vec::new();
        if self.at(Symbol::OpenBracket) {
            let open = self.advance()?.range;
            while !self.at(Symbol::CloseBracket) {
                extents.push(self.expression()?);
                if !self.accept(Symbol::Comma)? {
                    break;
                }
            }
            self.close(Symbol::CloseBracket, open)?;
        }
        Ok(TypeExpr { dtype, extents, range: self.since(dtype.range) })
    }

    /// `tile(500, (3 1 4))`.
    pub(super) fn tile(&mut self) -> Result<Tile<'a>> {
        let start = self.advance()?.range;
        let open = self.expect(Symbol::OpenParen)?;
        let mut axes = Vec::new();
        while !self.at(Symbol::CloseParen) {
            axes.push(self.tile_axis()?);
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseParen, open)?;
        let height = axes.iter().map(tile_height).max().unwrap_or(0);
        Ok(Tile { axes, range: self.since(start), height })
    }

    fn tile_axis(&mut self) -> Result<TileAxis<'a>> {
        let ragged = self.at(Symbol::OpenParen)
            && matches!(
                self.peek()?.kind,
                TokenKind::Int(_) | TokenKind::Name(_) | TokenKind::Symbol(Symbol::CloseParen)
            );
        if !ragged {
            return Ok(TileAxis::Uniform(self.expression()?));
        }
        let open = self.advance()?.range;
        let mut lengths = Vec::new();
        while !self.at(Symbol::CloseParen) {
            // Blanks separate, so that a length is a value without operators.
            lengths.push(self.primary()?);
            self.accept(Symbol::Comma)?;
        }
        self.close(Symbol::CloseParen, open)?;
        Ok(TileAxis::Ragged(lengths))
    }
}

fn tile_height(axis: &TileAxis<'_>) -> u16 {
    match axis {
        TileAxis::Uniform(length) => length.height,
        TileAxis::Ragged(lengths) => lengths.iter().map(|length| length.height).max().unwrap_or(0),
    }
}
