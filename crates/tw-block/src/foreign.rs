//! Functions of C that work element by element, by their address.

use std::ffi::c_void;

use tw_ir::error::{Error, Result};
use tw_ir::{Array, ArrayView, DType, with_buffer, with_slice};

type In = *const c_void;
type Out = *mut c_void;

/// More operands than this no function takes.
pub const MOST_OPERANDS: usize = 4;

/// A C function `void f(const A *a, .., R *result, intptr_t n)` that computes `n` elements, given by its address.
///
/// Nothing about an address can be checked, so [`ElementwiseFunction::new`] is unsafe; calling the function is safe afterwards.
pub struct ElementwiseFunction {
    address: usize,
    operands: Vec<DType>,
    result: DType,
}

impl ElementwiseFunction {
    /// Describes the code at an address. Fails for a signature that [`ElementwiseFunction::call`] could not call.
    ///
    /// # Safety
    ///
    /// As long as this value lives there must be, at the address, code with exactly the signature above for these element types. Any number of
    /// threads may call it at once. It reads and writes nothing but the `n` elements behind each pointer, and returns without unwinding.
    pub unsafe fn new(address: usize, operands: Vec<DType>, result: DType) -> Result<ElementwiseFunction> {
        if address == 0 {
            return Err(Error::source("a function of C has no address"));
        }
        if operands.is_empty() || operands.len() > MOST_OPERANDS {
            let n = operands.len();
            return Err(Error::source(format!(
                "a function of C takes {n} operands; from 1 to {MOST_OPERANDS} are possible"
            )));
        }
        // A byte that is neither 0 nor 1 is no truth value of ours, and nothing keeps C from writing one.
        if let Some(dtype) = operands.iter().chain([&result]).find(|dtype| **dtype == DType::Bool) {
            return Err(Error::types(format!("a function of C cannot work on {dtype}")));
        }
        Ok(ElementwiseFunction { address, operands, result })
    }

    /// Computes one block.
    pub fn call(&self, operands: &[ArrayView<'_>], result: &mut Array) -> Result<()> {
        let fits = operands.len() == self.operands.len()
            && operands.iter().zip(&self.operands).all(|(array, dtype)| array.dtype().storage() == dtype.storage())
            && operands.iter().all(|array| array.len() == result.len())
            && result.dtype().storage() == self.result.storage();
        if !fits {
            return Err(Error::internal("a function of C is called with other blocks than it takes"));
        }
        let n = isize::try_from(result.len()).map_err(|_| Error::internal("a block too long to be counted"))?;
        let inputs: Vec<In> =
            operands.iter().map(|array| with_slice!(array.data(), values => values.as_ptr() as In)).collect();
        let output: Out = with_buffer!(result.data_mut(), values => values.as_mut_ptr() as Out);
        let code = self.address as In;
        // SAFETY: the caller of `new` vouches for the code at the address and its signature. All pointers are to `n` elements of the types
        // it takes: lengths and types were compared above. The inputs are borrowed and not written, the output is borrowed alone.
        unsafe {
            match inputs[..] {
                [a] => std::mem::transmute::<In, extern "C" fn(In, Out, isize)>(code)(a, output, n),
                [a, b] => std::mem::transmute::<In, extern "C" fn(In, In, Out, isize)>(code)(a, b, output, n),
                [a, b, c] => std::mem::transmute::<In, extern "C" fn(In, In, In, Out, isize)>(code)(a, b, c, output, n),
                [a, b, c, d] => {
                    std::mem::transmute::<In, extern "C" fn(In, In, In, In, Out, isize)>(code)(a, b, c, d, output, n)
                }
                _ => return Err(Error::internal("a function of C with too many operands")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn add(a: *const f64, b: *const f64, result: *mut f64, n: isize) {
        for k in 0..n as usize {
            // SAFETY: the caller passes `n` elements behind each pointer.
            unsafe { *result.add(k) = *a.add(k) + *b.add(k) }
        }
    }

    fn adding() -> ElementwiseFunction {
        // SAFETY: `add` has this signature for doubles, and touches nothing but the elements it is given.
        unsafe { ElementwiseFunction::new(add as *const () as usize, vec![DType::F64; 2], DType::F64) }.unwrap()
    }

    #[test]
    fn calls_code_by_its_address() {
        let mut sum = Array::zeros(&[3], DType::F64).unwrap();
        let operands = [Array::from_f64(&[1.0, 2.0, 3.0]), Array::from_f64(&[10.0, 20.0, 30.0])];
        adding().call(&operands.each_ref().map(Array::view), &mut sum).unwrap();
        assert_eq!(sum.to_f64_vec(), [11.0, 22.0, 33.0]);
    }

    #[test]
    fn never_calls_it_with_other_lengths_or_types() {
        let mut sum = Array::zeros(&[2], DType::F64).unwrap();
        let two = Array::from_f64(&[1.0, 2.0]);
        let (one, integers) = (Array::from_f64(&[1.0]), Array::from_i64(&[1, 2]));
        assert!(adding().call(&[two.view(), one.view()], &mut sum).is_err());
        assert!(adding().call(&[two.view(), integers.view()], &mut sum).is_err());
        assert!(adding().call(&[two.view()], &mut sum).is_err());
    }

    #[test]
    fn refuses_what_it_cannot_call() {
        let address = add as *const () as usize;
        let wrong = [
            (0, vec![DType::F64; 2], DType::F64),
            (address, vec![DType::F64; 5], DType::F64),
            (address, vec![DType::F64; 2], DType::Bool),
        ];
        for (address, operands, result) in wrong {
            // SAFETY: the code is never called, because there is nothing to call it through.
            assert!(unsafe { ElementwiseFunction::new(address, operands, result) }.is_err());
        }
    }
}
