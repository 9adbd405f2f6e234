//! Extents that depend on data stay open until somebody asks.

use tilewright::build::SliceItem;
use tilewright::{Result, Session, concat};

fn runs(session: &Session) -> u64 {
    session.totals().segments
}

#[test]
fn a_masked_sum_runs_without_an_earlier_count() -> Result<()> {
    let session = Session::builder().threads(2).tile(7).build();
    let x = session.range(0, 100)?;
    let mask = x.gt(&session.full(&[], tilewright::Scalar::I64(39))?)?;
    let (few, more) = (x.compact(&mask)?, x.mul(&x)?.compact(&mask)?);
    let total = few.add(&more)?.sum(None)?;
    assert!(few.is_open() && !total.is_open());
    assert_eq!(runs(&session), 0);
    assert_eq!(total.item()?.as_i64(), (40..100).map(|n| n + n * n).sum::<i64>());
    let after = runs(&session);
    assert_eq!(after, 1, "a sum of selected elements counts nothing");
    assert_eq!(few.shape()?, [60]);
    assert_eq!(runs(&session), after + 1, "the count alone");
    assert!(!few.is_computed());
    Ok(())
}

#[test]
fn what_needs_the_number_computes_it() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let limit = session.full(&[], tilewright::Scalar::I64(6))?;
    let few = x.compact(&x.gt(&limit)?)?;
    let twice = concat(&[&few, &few], 0)?;
    assert_eq!(runs(&session), 1, "the count alone");
    assert_eq!(twice.shape()?, [6]);
    let last = few.slice(&[SliceItem::Index(-1)])?;
    assert_eq!(last.item()?.as_i64(), 9);
    assert!(few.slice(&[SliceItem::Index(3)]).is_err());
    assert!(few.add(&x).is_err(), "3 elements and 10");
    assert!(few.reshape(&[2, 2]).is_err());
    Ok(())
}

#[test]
fn equal_masks_give_equal_extents_and_the_count_is_made_once() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let mask = x.lt(&session.full(&[], tilewright::Scalar::I64(4))?)?;
    for _ in 0..100 {
        // Counts that nobody refers to any more give their numbers back.
        drop(x.compact(&mask)?);
    }
    let (a, b) = (x.compact(&mask)?, x.coordinate(0)?.compact(&mask)?);
    assert_eq!(a.ty().shape, b.ty().shape);
    let again = x.compact(&x.lt(&session.full(&[], tilewright::Scalar::I64(4))?)?)?;
    assert_eq!(a.ty().shape, again.ty().shape, "the same mask, written twice");
    let more = x.compact(&x.lt(&session.full(&[], tilewright::Scalar::I64(5))?)?)?;
    assert_ne!(a.ty().shape, more.ty().shape);
    let other = x.compact(&x.lt(&x)?)?;
    assert_ne!(a.ty().shape, other.ty().shape);
    let (program, _) = a.add(&b)?.program()?;
    let resolves = program.body.nodes.iter().filter(|node| node.op.name() == "resolve").count();
    assert_eq!(resolves, 1);
    Ok(())
}

#[test]
fn parts_of_selections_are_parts_of_what_is_selected() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let odd = x.compact(&x.gt(&session.full(&[], tilewright::Scalar::I64(4))?)?)?;
    let first = SliceItem::Slice { start: None, stop: Some(2), step: 1 };
    assert_eq!(odd.slice(&[first])?.sum(None)?.item()?.as_i64(), 5 + 6, "not all that the mask selects");
    assert_eq!(odd.sum(None)?.item()?.as_i64(), 5 + 6 + 7 + 8 + 9);
    Ok(())
}
