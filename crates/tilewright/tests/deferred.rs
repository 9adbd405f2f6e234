//! Extents that depend on data stay open until somebody asks.

use tilewright::build::SliceItem;
use tilewright::ir::BinaryOp;
use tilewright::{DType, Result, Scalar, Session, Tensor, concat};

fn runs(session: &Session) -> u64 {
    session.totals().segments
}

#[test]
fn a_masked_sum_runs_without_an_earlier_count() -> Result<()> {
    let session = Session::builder().threads(2).tile(7).build();
    let x = session.range(0, 100)?;
    let mask = x.gt(&session.full(&[], Scalar::I64(39))?)?;
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
    let limit = session.full(&[], Scalar::I64(6))?;
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
    let mask = x.lt(&session.full(&[], Scalar::I64(4))?)?;
    for _ in 0..100 {
        // Counts that nobody refers to any more give their numbers back.
        drop(x.compact(&mask)?);
    }
    let (a, b) = (x.compact(&mask)?, x.coordinate(0)?.compact(&mask)?);
    assert_eq!(a.ty().shape, b.ty().shape);
    let again = x.compact(&x.lt(&session.full(&[], Scalar::I64(4))?)?)?;
    assert_eq!(a.ty().shape, again.ty().shape, "the same mask, written twice");
    let more = x.compact(&x.lt(&session.full(&[], Scalar::I64(5))?)?)?;
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

/// Elements of a range above a limit, whose number nobody knows yet.
fn above(x: &Tensor, limit: i64) -> Result<Tensor> {
    let limit = x.session().full(&[], Scalar::I64(limit))?;
    x.compact(&x.gt(&limit)?)
}

#[test]
fn mistakes_that_no_extent_excuses_compute_nothing() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let (few, others) = (above(&x, 6)?, above(&x, 3)?);
    let reals = few.cast(DType::F64)?;
    let complex = few.cast(DType::C128)?;
    let table = session.full(&[2, 3], Scalar::I64(1))?;
    let wrong = [
        reals.binary(BinaryOp::And, &reals).map(drop),
        // The extents may differ, too, but the types are wrong whether they do or not.
        reals.binary(BinaryOp::And, &others).map(drop),
        complex.sort(0).map(drop),
        complex.topk(2, 0, true).map(drop),
        few.take(&reals, 0).map(drop),
        few.compact(&reals).map(drop),
        few.slice(&[SliceItem::Index(0), SliceItem::Index(0)]).map(drop),
        few.reshape(&[-1, -1]).map(drop),
        // Three columns are not four, however many rows there are.
        few.slice(&[SliceItem::FULL, SliceItem::NewAxis, SliceItem::NewAxis])?
            .mul(&table)?
            .add(&session.full(&[4], Scalar::I64(1))?)
            .map(drop),
    ];
    for (k, result) in wrong.into_iter().enumerate() {
        let error = result.expect_err(&format!("mistake {k} is accepted"));
        assert!(error.needed_extents().is_empty() && !error.message().contains(['%', '#']), "mistake {k}: {error}");
    }
    assert_eq!(runs(&session), 0, "something was computed before a mistake was reported");
    Ok(())
}

#[test]
fn unequal_extents_are_computed_before_they_are_compared() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let (few, same, fewer) = (above(&x, 6)?, above(&x.mul(&x)?, 36)?, above(&x, 7)?);
    assert_ne!(few.ty().shape, same.ty().shape);
    assert_eq!(few.add(&same)?.sum(None)?.item()?.as_i64(), 7 + 8 + 9 + 49 + 64 + 81);
    let error = few.add(&fewer).unwrap_err();
    assert!(error.message().contains("[3] and [2]"), "{error}");
    assert!(error.needed_extents().is_empty());
    Ok(())
}

#[test]
fn only_the_extent_that_is_needed_is_computed() -> Result<()> {
    let session = Session::builder().threads(1).build();
    let x = session.range(0, 10)?;
    let (few, many) = (above(&x, 6)?, above(&x, 2)?);
    let table = few.slice(&[SliceItem::FULL, SliceItem::NewAxis])?.mul(&many)?;
    let first_two = table.slice(&[SliceItem::Slice { start: None, stop: Some(2), step: 1 }])?;
    assert_eq!(runs(&session), 1, "one count");
    assert_eq!(table.ty().shape[0].known(), Some(3));
    assert!(many.is_open() && table.is_open() && first_two.is_open());
    assert_eq!(first_two.shape()?, [2, 7]);
    assert!(!table.is_open(), "a count that is known is known to all that share it");
    assert_eq!(first_two.sum(None)?.item()?.as_i64(), (7 + 8) * (3..10).sum::<i64>());
    Ok(())
}
