//! The plan of a paired comparison, which is fixed before the first pair: its looks, the verdict of each look, and its end.
//!
//! The looks are at 10, 20, 40, … pairs.
//!
//! Each pair gives one log ratio, ln(time A / time B). The side of a pair that runs first is drawn at random. So if both sides are equally
//! fast, a log ratio is as likely to be positive as negative, whatever drifts on the machine, and the signed-rank statistic has a known
//! distribution (Wilcoxon 1945, "Individual comparisons by ranking methods"). Inverting it gives an interval around the median of the
//! averages of two log ratios, which is the ratio reported (Hodges and Lehmann 1963, "Estimates of location based on rank tests"). The
//! interval is widened to include the quotient of both sides' medians.
//!
//! Every look adds to the chance of an error. All looks together may spend 1 % on each side, by a function of the share of pairs taken
//! (Lan and DeMets 1983, "Discrete sequential boundaries for clinical trials": the one near Pocock's boundaries). A look's share bounds its
//! own error, so the sum holds however the looks depend on each other, and all intervals of one comparison hold together (Jennison and
//! Turnbull 1989, "Interim analyses: the repeated confidence interval approach").
//!
//! The order is drawn once for two pairs, A B B A or B A A B. Noise that lasts for two or three steps then ties two pairs together, and the
//! intervals miss more often. That is why an interval of 95 % spends only 2 %; the simulation below shows that this is enough. `faster` and
//! `slower` need more certainty than the interval: all looks together spend 0.1 % on each.
//!
//! When other programs come and go, they slow both sides, but seldom by one factor. Then the ratio without them differs from the ratio
//! beside them, and the pairs are a mixture of both. So the interval is widened to include the ratio of the third of the pairs that were
//! slowed least, and that of the third that were slowed most.
//!
//! # The rate of errors
//!
//! A test of this module makes 16,500 comparisons of equal speeds under eleven kinds of noise, among them loads that come and go. At most
//! 0.5 % of them end with `faster`, at most 0.5 % with `slower`, and at most 5 % have an interval without the truth. So of twenty
//! comparisons of equal speeds, hardly one ends with `faster` or `slower`.

use super::robust::{median, quantile};
use crate::Verdict;

/// The number of pairs at the first look. Fewer pairs have no interval.
pub const FIRST_LOOK: u32 = 10;
/// The chance of an error on one side of the interval that all looks together may spend.
const INTERVAL_ERROR: f64 = 0.01;
/// The chance of a wrong `faster`, and of a wrong `slower`, that all looks together may spend.
const VERDICT_ERROR: f64 = 0.001;
/// The largest effect that counts as no effect.
const DEAD_BAND: f64 = 0.01;

/// The plan of one comparison, and the chances of an error that its looks have spent so far.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// The largest number of pairs.
    most: u32,
    spent_on_interval: f64,
    spent_on_verdict: f64,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookResult {
    /// The time of A divided by the time of B: above 1, B is faster.
    pub ratio: f64,
    /// The ends of the 95 % interval of the ratio; `None` below [`FIRST_LOOK`] pairs.
    pub interval: Option<(f64, f64)>,
    pub verdict: Verdict,
}

impl PairPlan {
    /// Returns a plan for at most this number of pairs.
    pub const fn new(most: u32) -> Self {
        Self {
            most,
            spent_on_interval: 0.0,
            spent_on_verdict: 0.0,
        }
    }

    /// Returns the numbers of pairs at which the plan looks: 10, 20, 40, … and the largest number.
    pub fn looks(&self) -> Vec<u32> {
        let most = self.most;
        let doubled = std::iter::successors(Some(FIRST_LOOK), |pairs| pairs.checked_mul(2));
        doubled
            .take_while(|pairs| *pairs < most)
            .chain([most])
            .collect()
    }

    /// Judges pairs (time of A, time of B) at a look. The last look may spend all the error that is left.
    pub fn look(&mut self, pairs: &[(f64, f64)], last: bool) -> LookResult {
        let averages = walsh_averages(pairs);
        let log_ratio = quantile(&averages, 0.5);
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let [slowed_least, slowed_most] = log_ratios_by_load(pairs, log_ratio);
        // If one of these estimates differs, none of them is certain, so the interval includes them all.
        let estimates = [(median(&a) / median(&b)).ln(), slowed_least, slowed_most];
        let share = if last {
            1.0
        } else {
            (pairs.len() as f64 / f64::from(self.most)).min(1.0)
        };
        let spend = (1.0 + (std::f64::consts::E - 1.0) * share).ln();
        let interval = |error: f64, spent: &mut f64| {
            if pairs.len() < FIRST_LOOK as usize {
                return None;
            }
            let (outside, used) = averages_outside(pairs.len(), error * spend - *spent)?;
            *spent += used;
            let [mut low, mut high] = [averages[outside], averages[averages.len() - 1 - outside]];
            for estimate in estimates {
                low = low.min(estimate);
                high = high.max(estimate);
            }
            Some((low.exp(), high.exp()))
        };
        let shown = interval(INTERVAL_ERROR, &mut self.spent_on_interval);
        let certain = interval(VERDICT_ERROR, &mut self.spent_on_verdict);
        let verdict = match verdict(shown) {
            Verdict::Same => Verdict::Same,
            _ => verdict(certain),
        };
        LookResult {
            ratio: log_ratio.exp(),
            interval: shown,
            verdict,
        }
    }
}

/// Returns the ratio that these pairs show.
pub fn ratio(pairs: &[(f64, f64)]) -> f64 {
    quantile(&walsh_averages(pairs), 0.5).exp()
}

/// Returns the log ratio of the third of the pairs that other programs slowed least, and that of the third that they slowed most. The
/// less slowed side of a pair shows the load, because a single slow step is no load.
fn log_ratios_by_load(pairs: &[(f64, f64)], log_ratio: f64) -> [f64; 2] {
    let mut by_load = pairs.to_vec();
    let less_slowed = |(a, b): &(f64, f64)| a.min(log_ratio.exp() * b);
    by_load.sort_by(|one, other| less_slowed(one).total_cmp(&less_slowed(other)));
    let third = by_load.len().div_ceil(3);
    [&by_load[..third], &by_load[by_load.len() - third..]]
        .map(|third| quantile(&walsh_averages(third), 0.5))
}

/// Returns the verdict of an interval, which has to leave the dead band.
fn verdict(interval: Option<(f64, f64)>) -> Verdict {
    let most = 1.0 + DEAD_BAND;
    let least = 1.0 / most;
    match interval {
        Some((low, _)) if low > most => Verdict::Faster,
        Some((_, high)) if high < least => Verdict::Slower,
        Some((low, high)) if low >= least && high <= most => Verdict::Same,
        _ => Verdict::Unclear,
    }
}

/// Returns the averages of every two log ratios of the pairs, each ratio with itself included, in ascending order.
fn walsh_averages(pairs: &[(f64, f64)]) -> Vec<f64> {
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
    let mut averages = Vec::new();
    for (index, first) in logs.iter().enumerate() {
        averages.extend(logs[index..].iter().map(|second| 0.5 * (first + second)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// Returns the number of averages that may be outside each end of the interval, and the chance of an error that this spends: the largest
/// w with P(W <= w) <= `error`, where W is the signed-rank statistic of `n` pairs of equal speed. `None` if even P(W = 0) = 2^-n is above
/// `error`.
fn averages_outside(n: usize, error: f64) -> Option<(usize, f64)> {
    let largest = n * (n + 1) / 2;
    let mut chance = vec![0.0; largest + 1];
    chance[0] = 1.0;
    // Each rank counts with a chance of one half.
    for rank in 1..=n {
        for w in (0..=largest).rev() {
            let with = if w >= rank { chance[w - rank] } else { 0.0 };
            chance[w] = 0.5 * (chance[w] + with);
        }
    }
    let mut sum = 0.0;
    let mut largest_allowed = None;
    for (w, chance) in chance.into_iter().enumerate() {
        sum += chance;
        if sum > error {
            break;
        }
        largest_allowed = Some((w, sum));
    }
    largest_allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// The noise of a machine: a function that returns what it adds to the logarithm of a step's time. It may keep a number from step to
    /// step, and gets the number of the step.
    type Noise = fn(&mut Rng, &mut f64, usize) -> f64;

    const NOISES: [(&str, Noise); 11] = [
        ("white", |rng, _, _| 0.05 * rng.normal()),
        ("so strong that the dead band is no help", |rng, _, _| {
            0.3 * rng.normal()
        }),
        ("drift", |rng, slope, step| {
            if step == 0 {
                *slope = 0.002 * rng.normal();
            }
            0.03 * rng.normal() + *slope * step as f64
        }),
        ("bursts", |rng, burst, _| {
            // A burst begins every thirty steps and lasts for seven, on average.
            if rng.uniform() < if *burst > 0.0 { 0.15 } else { 0.03 } {
                *burst = 0.5 - *burst;
            }
            0.03 * rng.normal() + *burst
        }),
        ("a slow step in ten", |rng, _, _| {
            let spike = if rng.uniform() < 0.1 {
                1.0 + rng.uniform()
            } else {
                0.0
            };
            0.02 * rng.normal() + spike
        }),
        ("autocorrelated", |rng, last, _| {
            *last = 0.5 * *last + 0.05 * rng.normal();
            *last
        }),
        ("gusts of two steps", |rng, last, _| {
            let gust = if rng.uniform() < 0.2 { 0.5 } else { 0.0 };
            let before = std::mem::replace(last, gust);
            0.05 * rng.normal() + gust + before
        }),
        ("period of four steps", |rng, _, step| {
            0.02 * rng.normal() + if step.is_multiple_of(4) { 0.4 } else { 0.0 }
        }),
        ("a load that comes and goes", load),
        ("a load that comes once and stays", |rng, _, step| {
            let level = if step > 45 { 2.0 } else { 0.0 };
            (0.02 + 0.1 * level) * rng.normal() + level
        }),
        ("slices of other threads", |rng, busy, _| {
            // While the threads are busy, a step of 10 ms waits for none to three slices of 4 ms.
            if rng.uniform() < 0.05 {
                *busy = 1.0 - *busy;
            }
            let slices = if *busy > 0.0 {
                rng.below(4) as f64
            } else {
                0.0
            };
            0.01 * rng.normal() + (1.0 + 0.4 * slices).ln()
        }),
    ];

    /// Returns the noise of a load that lasts for forty steps on average, doubles the times and makes them rougher.
    fn load(rng: &mut Rng, load: &mut f64, _: usize) -> f64 {
        if rng.uniform() < 0.025 {
            *load = 0.7 - *load;
        }
        (0.02 + 0.2 * *load) * rng.normal() + *load
    }

    /// The end of a simulated comparison.
    struct Ending {
        verdict: Verdict,
        pairs: u32,
        /// True if the interval of any look missed the true ratio.
        missed: bool,
    }

    /// Simulates a comparison of at most `most` pairs whose true ratio is `truth`.
    fn compare(most: u32, rng: &mut Rng, noise: Noise, truth: f64) -> Ending {
        let mut plan = PairPlan::new(most);
        let mut pairs = Vec::new();
        let mut state = 0.0;
        let mut step = 0;
        let mut missed = false;
        let mut a_first = false;
        for look in plan.looks() {
            while pairs.len() < look as usize {
                a_first = if pairs.len().is_multiple_of(2) {
                    rng.uniform() < 0.5
                } else {
                    !a_first
                };
                let first = noise(rng, &mut state, step).exp();
                let second = noise(rng, &mut state, step + 1).exp();
                step += 2;
                pairs.push(if a_first {
                    (first * truth, second)
                } else {
                    (second * truth, first)
                });
            }
            let result = plan.look(&pairs, look == most);
            assert_agrees(&result, &pairs);
            let (low, high) = result.interval.expect("from ten pairs on");
            missed |= low > truth || high < truth;
            if result.verdict != Verdict::Unclear || look == most {
                return Ending {
                    verdict: result.verdict,
                    pairs: look,
                    missed,
                };
            }
        }
        unreachable!("the last look ends the comparison")
    }

    /// Checks that the interval includes the ratio and the quotient of both sides' medians.
    fn assert_agrees(result: &LookResult, pairs: &[(f64, f64)]) {
        let (low, high) = result.interval.expect("from ten pairs on");
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let medians = median(&a) / median(&b);
        assert!(low <= result.ratio && result.ratio <= high, "{result:?}");
        assert!(low <= medians && medians <= high, "{result:?}, {medians}");
    }

    #[test]
    fn equal_speeds_are_rarely_judged_faster_or_slower() {
        for (name, noise) in NOISES {
            let mut rng = Rng::named(1, name, 0);
            let mut faster = 0;
            let mut slower = 0;
            let mut missed = 0;
            for _ in 0..1500 {
                let ending = compare(80, &mut rng, noise, 1.0);
                faster += u32::from(ending.verdict == Verdict::Faster);
                slower += u32::from(ending.verdict == Verdict::Slower);
                missed += u32::from(ending.missed);
            }
            println!("{name}: {faster} faster, {slower} slower, {missed} missed, of 1500");
            // These limits are the rates of the module's docs: 0.5 % and 5 %.
            assert!(faster <= 7 && slower <= 7, "{name}: {faster}, {slower}");
            assert!(missed <= 75, "{name}: {missed} of 1500 missed");
        }
    }

    #[test]
    fn a_large_effect_ends_early_under_every_noise() {
        for (name, noise) in NOISES {
            let mut rng = Rng::named(2, name, 0);
            for _ in 0..50 {
                let ending = compare(160, &mut rng, noise, 3.1);
                assert_eq!(ending.verdict, Verdict::Faster, "{name}");
                assert!(ending.pairs <= 80, "{name}: {}", ending.pairs);
            }
        }
    }

    #[test]
    fn a_small_effect_is_found_within_the_limit() {
        let (_, white) = NOISES[0];
        let mut rng = Rng::named(3, "white", 0);
        for _ in 0..100 {
            let large = compare(80, &mut rng, white, 3.1);
            let inverse = compare(80, &mut rng, white, 1.0 / 3.1);
            let small = compare(80, &mut rng, white, 1.1);

            assert_eq!((large.verdict, large.pairs), (Verdict::Faster, 20));
            assert_eq!((inverse.verdict, inverse.pairs), (Verdict::Slower, 20));
            assert_eq!(small.verdict, Verdict::Faster);
        }
    }

    /// Simulates a comparison, and returns the chance of an error on one side that its looks together have spent.
    fn error_spent(rng: &mut Rng) -> f64 {
        let mut plan = PairPlan::new(80);
        let mut pairs = Vec::new();
        let mut spent = 0.0;
        for look in plan.looks() {
            while pairs.len() < look as usize {
                // A load slows both sides of a pair alike, so that the ranks alone determine most intervals.
                let load = rng.normal().exp();
                pairs.push((load * (0.01 * rng.normal()).exp(), load));
            }
            let (low, _) = plan
                .look(&pairs, look == 80)
                .interval
                .expect("from ten pairs on");
            let below =
                walsh_averages(&pairs).partition_point(|average| *average < low.ln() - 1e-9);
            spent += (1..=1000)
                .map(|n| INTERVAL_ERROR * f64::from(n) / 1000.0)
                .filter_map(|error| averages_outside(pairs.len(), error))
                .take_while(|(outside, _)| *outside <= below)
                .last()
                .map_or(0.0, |(_, error)| error);
        }
        spent
    }

    #[test]
    fn all_looks_together_spend_no_more_than_the_error_of_one_side() {
        let mut rng = Rng::named(5, "spent", 0);
        let most = (0..20).map(|_| error_spent(&mut rng)).fold(0.0, f64::max);
        assert!(
            (0.9 * INTERVAL_ERROR..=INTERVAL_ERROR).contains(&most),
            "{most}"
        );
    }

    #[test]
    fn the_interval_includes_the_ratios_without_and_under_load() {
        let mut rng = Rng::named(4, "both", 0);
        let mut both = 0;
        let mut wide = 0;
        let mut fell_short = 0;
        for _ in 0..500 {
            let mut state = 0.0;
            let mut pairs = Vec::new();
            let mut loaded = 0;
            for _ in 0..80 {
                let first = load(&mut rng, &mut state, 0).exp();
                let second = load(&mut rng, &mut state, 0).exp();
                loaded += u32::from(state > 0.0);
                // The load slows B more than A.
                let ratio = if state > 0.0 { 2.6 } else { 3.3 };
                pairs.push((first * ratio, second));
            }
            // Some comparisons are almost all with or without the load, and have one true ratio only.
            if !(27..=53).contains(&loaded) {
                continue;
            }
            both += 1;
            let (low, high) = PairPlan::new(80)
                .look(&pairs, true)
                .interval
                .expect("80 pairs");
            fell_short += u32::from(low > 2.6 * 1.05 || high < 3.3 / 1.05);
            wide += u32::from(low < 2.3 || high > 3.7);
        }
        println!("of {both}, {fell_short} fell short and {wide} are wider");
        // If the interval did not include the ratios of the thirds, four of five would fall short.
        assert!(
            both > 100 && fell_short * 3 < both,
            "{fell_short} of {both}"
        );
        assert!(wide * 20 < both, "{wide} of {both}");
    }

    #[test]
    fn the_interval_includes_the_quotient_of_the_medians() {
        // The ratio of all pairs but the last is 2, at two speeds of the machine. The last pair moves the median of A to the slow speed.
        let mut pairs = vec![(100.0, 50.0); 5];
        pairs.extend([(300.0, 150.0); 5]);
        pairs.push((300.0, 50.0));

        let result = PairPlan::new(11).look(&pairs, true);

        assert_agrees(&result, &pairs);
        assert_eq!((result.ratio, result.interval), (2.0, Some((2.0, 6.0))));
    }

    #[test]
    fn below_ten_pairs_there_is_no_interval() {
        let result = PairPlan::new(80).look(&[(2.0, 1.0); 9], true);
        assert_eq!((result.interval, result.verdict), (None, Verdict::Unclear));
        assert!((result.ratio - 2.0).abs() < 1e-12);
    }

    #[test]
    fn ten_equal_pairs_are_enough_for_a_verdict() {
        let verdict = |pair| PairPlan::new(80).look(&[pair; 10], true).verdict;
        assert_eq!(verdict((2.0, 1.0)), Verdict::Faster);
        assert_eq!(verdict((1.0, 1.0)), Verdict::Same);
    }

    #[test]
    fn looks_double_up_to_the_most() {
        let looks = |most| PairPlan::new(most).looks();
        assert_eq!(looks(80), [10, 20, 40, 80]);
        assert_eq!(looks(33), [10, 20, 33]);
        assert_eq!(looks(5), [5]);
    }

    #[test]
    fn the_dead_band_is_one_percent() {
        for (interval, expected) in [
            ((1.002, 1.008), Verdict::Same),
            ((0.995, 1.02), Verdict::Unclear),
            ((1.011, 1.02), Verdict::Faster),
            ((0.97, 0.99), Verdict::Slower),
        ] {
            assert_eq!(verdict(Some(interval)), expected, "{interval:?}");
        }
        assert_eq!(verdict(None), Verdict::Unclear);
    }
}
