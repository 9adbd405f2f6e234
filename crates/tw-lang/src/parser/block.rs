//! Calls with several results.

use tw_ir::Result;

use super::Parser;
use crate::ast::{BlockCall, Name, StmtKind};
use crate::token::{Keyword, Symbol};

impl<'a> Parser<'a> {
    /// `Q, R = block qr(A[i, :]) -> f64[i, 4], f64[4*i, 4]` or `Q, R = linalg.qr(A)`, after the first target.
    pub(super) fn block_call(&mut self, first: Name<'a>) -> Result<StmtKind<'a>> {
        let mut targets = vec![first];
        while self.accept(Symbol::Comma)? {
            targets.push(self.name("the name of another result")?);
        }
        self.expect(Symbol::Assign)?;
        if !self.accept_keyword(Keyword::Block)? {
            return Ok(StmtKind::Unpack { targets, value: self.expression()? });
        }
        let function = self.name("the name of a block function")?;
        let open = self.expect(Symbol::OpenParen)?;
        let mut operands = Vec::new();
        while !self.at(Symbol::CloseParen) {
            let operand = self.name("the name of a tensor")?;
            let items = if self.at(Symbol::OpenBracket) { self.index_items()?.0 } else { Vec::new() };
            operands.push((operand, items));
            if !self.accept(Symbol::Comma)? {
                break;
            }
        }
        self.close(Symbol::CloseParen, open)?;
        self.expect(Symbol::Arrow)?;
        let mut results = vec![self.type_expr()?];
        while self.accept(Symbol::Comma)? {
            results.push(self.type_expr()?);
        }
        Ok(StmtKind::BlockCall(Box::new(BlockCall { targets, function, operands, results })))
    }
}
