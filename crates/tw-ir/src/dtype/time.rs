//! Units of time, and what times have beyond integers: NaT and conversion between units.

use super::DType;

/// Not a time: what NaN is to floats. The smallest i64.
pub const NAT: i64 = i64::MIN;

macro_rules! units {
    ($($(#[$doc:meta])* $variant:ident $text:literal;)*) => {
        /// The units of times, from coarse to fine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TimeUnit { $($(#[$doc])* $variant,)* }

        impl TimeUnit {
            /// Every unit, from coarse to fine.
            pub const ALL: &'static [TimeUnit] = &[$(TimeUnit::$variant,)*];

            /// NumPy's name of the unit.
            pub fn name(self) -> &'static str {
                match self { $(TimeUnit::$variant => $text,)* }
            }
            pub(super) fn datetime_name(self) -> &'static str {
                match self { $(TimeUnit::$variant => concat!("datetime64[", $text, "]"),)* }
            }
            pub(super) fn timedelta_name(self) -> &'static str {
                match self { $(TimeUnit::$variant => concat!("timedelta64[", $text, "]"),)* }
            }
        }
    };
}
units! {
    /// Years.
    Year "Y";
    /// Months.
    Month "M";
    /// Weeks.
    Week "W";
    /// Days.
    Day "D";
    /// Hours.
    Hour "h";
    /// Minutes.
    Minute "m";
    /// Seconds.
    Second "s";
    /// 10^-3 seconds.
    Milli "ms";
    /// 10^-6 seconds.
    Micro "us";
    /// 10^-9 seconds.
    Nano "ns";
    /// 10^-12 seconds.
    Pico "ps";
    /// 10^-15 seconds.
    Femto "fs";
    /// 10^-18 seconds.
    Atto "as";
}

impl TimeUnit {
    /// The unit of this name.
    pub fn named(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.iter().copied().find(|unit| unit.name() == name)
    }

    /// True for years and months, whose length in days varies.
    pub fn is_calendar(self) -> bool {
        matches!(self, TimeUnit::Year | TimeUnit::Month)
    }

    /// Its length in the next finer unit; months have no fixed number of weeks.
    fn step(self) -> Option<i64> {
        Some(match self {
            TimeUnit::Year => 12,
            TimeUnit::Month => return None,
            TimeUnit::Week => 7,
            TimeUnit::Day => 24,
            TimeUnit::Hour | TimeUnit::Minute => 60,
            _ => 1000,
        })
    }

    /// Its length in a finer unit; `None` if that varies, or does not fit an i64.
    pub fn ratio(self, finer: TimeUnit) -> Option<i64> {
        let steps = &TimeUnit::ALL[self as usize..finer as usize];
        steps.iter().try_fold(1i64, |ratio, unit| ratio.checked_mul(unit.step()?))
    }
}

/// `datetime64[ns]`, `timedelta64[s]`, and NumPy's short forms `M8[ns]` and `m8[s]`.
pub(super) fn parse_time(text: &str) -> Option<DType> {
    let (kind, unit) = text.strip_suffix(']')?.split_once('[')?;
    let unit = TimeUnit::named(unit)?;
    match kind {
        "datetime64" | "M8" => Some(DType::DateTime(unit)),
        "timedelta64" | "m8" => Some(DType::TimeDelta(unit)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_multiply() {
        assert_eq!(TimeUnit::Week.ratio(TimeUnit::Second), Some(604_800));
        assert_eq!(TimeUnit::Year.ratio(TimeUnit::Month), Some(12));
        assert_eq!(TimeUnit::Month.ratio(TimeUnit::Day), None);
        assert_eq!(TimeUnit::Day.ratio(TimeUnit::Day), Some(1));
        assert_eq!(TimeUnit::Day.ratio(TimeUnit::Atto), None);
    }
}
