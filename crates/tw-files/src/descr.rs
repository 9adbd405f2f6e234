//! Element types as NumPy writes them: `<f8`.

use tw_ir::{DType, TimeUnit};

/// How NumPy writes a type. It has no bfloat16.
pub(crate) fn of(dtype: DType) -> Option<String> {
    Some(match dtype {
        DType::BF16 => return None,
        DType::Bool => "|b1".into(),
        DType::DateTime(unit) => format!("<M8[{}]", unit.name()),
        DType::TimeDelta(unit) => format!("<m8[{}]", unit.name()),
        _ => {
            let kind = match dtype {
                _ if dtype.is_float() => 'f',
                _ if dtype.is_complex() => 'c',
                _ if dtype.is_unsigned() => 'u',
                _ => 'i',
            };
            let order = if dtype.size() == 1 { '|' } else { '<' };
            format!("{order}{kind}{}", dtype.size())
        }
    })
}

/// The type that a text names, and whether its bytes are in big-endian order. `=` is what NumPy wrote on some machine, which we take for little-endian.
pub(crate) fn parse(text: &str) -> Option<(DType, bool)> {
    let body = text.strip_prefix(['<', '>', '|', '=']).unwrap_or(text);
    let times = TimeUnit::ALL.iter().flat_map(|&unit| [DType::DateTime(unit), DType::TimeDelta(unit)]);
    let dtype = DType::PHYSICAL.into_iter().chain(times).find(|&dtype| of(dtype).is_some_and(|d| &d[1..] == body))?;
    Some((dtype, text.starts_with('>') && dtype.size() > 1))
}
