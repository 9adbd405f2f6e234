//! Loops and branches.

use std::rc::Rc;

use super::Machine;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::program::Region;

impl Machine<'_> {
    /// Runs the body while the condition holds; the carried values after the last turn.
    pub(super) fn run_while(
        &mut self,
        condition: &Region,
        body: &Region,
        mut carried: Vec<Rc<Array>>,
    ) -> Result<Vec<Rc<Array>>> {
        loop {
            self.step()?;
            let verdict = self.region(condition, &carried)?;
            if !is_true(verdict.first())? {
                return Ok(carried);
            }
            carried = self.region(body, &carried)?;
        }
    }

    /// Runs one of the regions; the other is not run at all.
    pub(super) fn run_if(
        &mut self,
        then: &Region,
        otherwise: &Region,
        condition: &Rc<Array>,
    ) -> Result<Vec<Rc<Array>>> {
        let taken = if is_true(Some(condition))? { then } else { otherwise };
        self.region(taken, &[])
    }
}

fn is_true(condition: Option<&Rc<Array>>) -> Result<bool> {
    condition
        .and_then(|array| array.item())
        .map(|value| value.is_true())
        .ok_or_else(|| Error::internal("a condition is not one scalar"))
}
