//! What a ratio of kernel times rests on: profiled steps, which are no timed steps, and few.

use super::{Lookup, Subject};
use crate::course::metric;

/// How many profiled steps are behind each side of a ratio; `None` where the figure is not of kernels.
pub fn profiles(metric: &str, from: &dyn Lookup) -> Option<String> {
    if !metric::of_profiles(metric) {
        return None;
    }
    let of = |subject| Some(from.finished(subject)?.kernels.profiles.max(1));
    Some(match (of(Subject::Broken)?, of(Subject::Fixed)?) {
        (1, 1) => " (one profile each)".to_owned(),
        (a, b) if a == b => format!(" (medians, n {a} profiles each)"),
        (a, b) => format!(" (medians, n {a} and {b} profiles)"),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{Preset, RunConfig};
    use crate::course::placeholder::{Figures, resolve};
    use crate::protocol::{Finished, TopKernel};

    #[test]
    fn a_ratio_of_kernel_times_says_how_many_profiles_it_rests_on() {
        let config = RunConfig::preset(Preset::Tiny);
        let run = |ms: f64, profiles: u32| {
            let mut run = Finished::default();
            run.kernels.profiles = profiles;
            run.kernels.top = vec![TopKernel {
                scope: "attention/forward".to_owned(),
                ms,
                ..TopKernel::default()
            }];
            run
        };
        let said = |a: u32, b: u32| {
            let (broken, fixed) = (run(3.0, a), run(2.0, b));
            let figures = Figures {
                broken: Some(&broken),
                fixed: Some(&fixed),
                ..Figures::none(&config)
            };
            resolve("ratio.part.attention.ms", &figures)
        };
        assert_eq!(said(0, 1), "1.50x (one profile each)");
        assert_eq!(said(4, 4), "1.50x (medians, n 4 profiles each)");
        assert_eq!(said(5, 2), "1.50x (medians, n 5 and 2 profiles)");
    }
}
