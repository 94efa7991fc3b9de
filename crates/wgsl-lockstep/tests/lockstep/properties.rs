//! Random kernels: the races that the shadow memory finds are those of all pairs of accesses, and damaged kernels never panic.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wgsl_lockstep::{
    Access, AccessKind, Arrival, Buffer, FindingKind, Launch, LaunchLimits, Observer, Shader, Space,
};

/// A small generator of pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// One invocation's access of an element.
#[derive(Clone, Copy)]
struct Touch {
    lane: u32,
    group: u32,
    /// The number of earlier barriers for this kind of memory.
    epoch: u32,
    write: bool,
    line: u32,
}

/// Records every access to every element. Accesses of workgroup memory are forgotten when the next workgroup starts.
#[derive(Default)]
struct AccessLog {
    /// The accesses of each element, by variable and offset.
    touched: HashMap<(String, u32), Vec<Touch>>,
    group: u32,
    /// The number of barriers for workgroup memory and for storage.
    epochs: [u32; 2],
}

impl Observer for AccessLog {
    fn workgroup_start(&mut self, _: [u32; 3], _: u32) {
        self.group += 1;
        self.touched
            .retain(|(name, _), _| name != "t" && name != "v");
    }

    fn access(&mut self, access: &Access<'_>) {
        let epoch = self.epochs[usize::from(access.space == Space::Storage)];
        let write = access.kind != AccessKind::Load;
        let (group, line) = (self.group, access.location.line);
        for &lane in access.lanes {
            let first = access.offsets[lane as usize];
            for offset in (first..first + access.bytes).step_by(4) {
                let key = (access.variable.to_owned(), offset);
                let touch = Touch {
                    lane,
                    group,
                    epoch,
                    write,
                    line,
                };
                self.touched.entry(key).or_default().push(touch);
            }
        }
    }

    fn barrier(&mut self, arrival: &Arrival<'_>) {
        self.epochs[0] += u32::from(arrival.workgroup_memory);
        self.epochs[1] += u32::from(arrival.storage);
    }
}

impl AccessLog {
    /// Compares all pairs of accesses. Returns the variables with a race, and the pairs of lines that race, the lower line first.
    fn races(&self) -> HashMap<String, Vec<(u32, u32)>> {
        let mut races: HashMap<String, Vec<(u32, u32)>> = HashMap::new();
        for ((name, _), all) in &self.touched {
            for (index, a) in all.iter().enumerate() {
                for b in &all[..index] {
                    let is_unordered =
                        a.group != b.group || (a.epoch == b.epoch && a.lane != b.lane);
                    if is_unordered && (a.write || b.write) {
                        let lines = (a.line.min(b.line), a.line.max(b.line));
                        races.entry(name.clone()).or_default().push(lines);
                    }
                }
            }
        }
        races
    }
}

/// Writes a kernel with random accesses of two buffers and two variables in workgroup memory, and with random barriers.
fn kernel(random: &mut Random) -> String {
    let mut text = "@group(0) @binding(0) var<storage, read_write> a: array<u32, 32>;
@group(0) @binding(1) var<storage, read_write> out: array<vec2<u32>, 32>;
var<workgroup> t: array<u32, 32>;
var<workgroup> v: array<vec2<u32>, 32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    var x = i;
    for (var k = 0u; k < 2u; k++) {
"
    .to_owned();
    let local_indices = [
        "i",
        "i",
        "i",
        "i ^ 1u",
        "i / 2u",
        "3u - i",
        "(i + k) % 4u",
        "x % 4u",
        "2u",
    ];
    let global_indices = [
        "id.x",
        "id.x",
        "id.x",
        "id.x ^ 1u",
        "id.x / 2u",
        "id.x ^ 4u",
        "(id.x + k) % 8u",
        "5u",
    ];
    for _ in 0..1 + random.below(4) {
        let [p, q] = [0; 2].map(|_| random.pick(&local_indices));
        let [g, h] = [0; 2].map(|_| random.pick(&global_indices));
        let statement = match random.below(9) {
            0 => format!("t[{p}] = x;"),
            1 => format!("x += t[{p}];"),
            2 => format!("v[{p}] = vec2(x, t[{q}]);"),
            3 => format!("x += v[{p}].y;"),
            4 => format!("x += a[{g}];"),
            5 => format!("out[{g}] = vec2(x + a[{h}]);"),
            6 => format!("a[{g}] = x;"),
            7 => format!("x += out[{g}].x;"),
            _ => format!("t[{p}] += v[{q}].x;"),
        };
        let line = match random.below(6) {
            0 => format!("if (i < {}u) {{\n {statement}\n}}\n", random.below(4)),
            1 => format!("if (i % 2u == 0u) {{\n {statement}\n}} else {{\n x += 1u;\n}}\n"),
            _ => format!("{statement}\n"),
        };
        text += &line;
        text += random.pick(&[
            "",
            "workgroupBarrier();\n",
            "storageBarrier();\n",
            "workgroupBarrier(); storageBarrier();\n",
        ]);
    }
    text + "    }\n}\n"
}

#[test]
fn races_are_those_of_all_pairs_of_accesses() {
    let mut with_race = 0;
    let mut without_race = 0;
    for seed in 0..3000 {
        let text = kernel(&mut Random(seed));
        let shader = Shader::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut buffers = [Buffer::zeroed(0, 0, 128), Buffer::zeroed(0, 1, 256)];
        let mut log = AccessLog::default();
        let groups = 1 + seed as u32 % 2;
        let report = shader
            .run(&Launch::new([groups, 1, 1]), &mut buffers, &mut log)
            .expect("runs");
        let races = log.races();
        // The log has only the last workgroup's accesses of workgroup memory.
        let is_logged = |name: &str| groups == 1 || name == "a" || name == "out";
        let is_race = |kind| matches!(kind, FindingKind::Race | FindingKind::SameValue);
        let found: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| is_race(finding.kind))
            .collect();
        for name in ["a", "out", "t", "v"]
            .into_iter()
            .filter(|name| is_logged(name))
        {
            let is_found = found
                .iter()
                .any(|finding| finding.variable.as_deref() == Some(name));
            let expected = races.contains_key(name);
            assert_eq!(is_found, expected, "{name}: {found:?}\n{text}");
            with_race += usize::from(expected);
            without_race += usize::from(!expected);
        }
        for finding in found {
            let name = finding.variable.as_deref().expect("a name");
            let other = finding.other.as_ref().expect("another access");
            let [a, b] = [finding.location.line, other.location.line];
            let lines = (a.min(b), a.max(b));
            assert!(
                !is_logged(name) || races[name].contains(&lines),
                "{finding}\n{text}"
            );
        }
    }
    // Both outcomes are frequent, so neither is tested by chance only.
    assert!(with_race > 1000 && without_race > 1000);
}

/// Returns texts to damage: random kernels, the kernels in these tests, and those of the exercises if this folder is in their checkout.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = (0..20).map(|seed| kernel(&mut Random(seed))).collect();
    for source in [include_str!("findings.rs"), include_str!("language.rs")] {
        let entry = |lanes: u32, argument: &str| {
            format!("@compute @workgroup_size({lanes}) fn main({argument})")
        };
        let lane = "@builtin(local_invocation_index) i: u32";
        let source = source
            .replace("{{", "{")
            .replace("}}", "}")
            .replace("{MAIN}", &entry(8, lane))
            .replace("{ONE}", &entry(1, ""))
            .replace("{FOUR}", &entry(4, lane));
        for piece in source.split('"').filter(|piece| piece.contains("@compute")) {
            let piece = piece.replace("\\n", "\n").replace("//head", "");
            let head = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<storage, read_write> a: array<u32>;
";
            texts.push(piece.clone());
            texts.push(match piece.strip_prefix("enable f16;") {
                Some(rest) => format!("enable f16;\n{head}{rest}"),
                None => format!("{head}{piece}"),
            });
            texts.push(format!("{}{piece}", head.replace("u32", "f32")));
        }
    }
    let exercises = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../exercises"));
    for exercise in exercises.into_iter().flatten().flatten() {
        let folders = [exercise.path(), exercise.path().join("solution")];
        for file in folders
            .iter()
            .flat_map(std::fs::read_dir)
            .flatten()
            .flatten()
        {
            if file
                .path()
                .extension()
                .is_some_and(|ending| ending == "wgsl")
                && let Ok(text) = std::fs::read_to_string(file.path())
            {
                texts.push(filled(&text, "16"));
                texts.push(filled(&text, "3"));
            }
        }
    }
    texts
}

/// Replaces each placeholder such as `{{N}}` by a size.
fn filled(text: &str, size: &str) -> String {
    let mut filled = text.to_owned();
    while let (Some(start), Some(end)) = (filled.find("{{"), filled.find("}}")) {
        filled.replace_range(start..end + 2, size);
    }
    filled
}

/// Swaps, drops and repeats pieces of a text.
fn damage(text: &str, others: &[String], random: &mut Random) -> String {
    let mut tokens: Vec<String> = Vec::new();
    for c in text.chars() {
        match tokens.last_mut() {
            Some(last)
                if (c.is_alphanumeric() || c == '_')
                    && last.chars().all(|c| c.is_alphanumeric() || c == '_') =>
            {
                last.push(c)
            }
            _ => tokens.push(c.to_string()),
        }
    }
    let class = |token: &String| match token.chars().next() {
        Some(c) if c.is_ascii_digit() => 1,
        Some(c) if c.is_alphabetic() => 2,
        Some(c) if "+-*/%<>&|^=".contains(c) => 3,
        _ => 0,
    };
    for _ in 0..1 + random.below(3) {
        let at = random.below(tokens.len());
        match (class(&tokens[at]), random.below(8)) {
            (1, 0..4) => {
                let numbers = [
                    "0u",
                    "1u",
                    "31u",
                    "4294967295u",
                    "-1",
                    "2147483647",
                    "0.0",
                    "1e38",
                    "0",
                    "3",
                    "64",
                ];
                tokens[at] = random.pick(&numbers).to_owned();
            }
            (2, 0) => {
                let types = [
                    "u32",
                    "i32",
                    "f32",
                    "f16",
                    "bool",
                    "vec2<u32>",
                    "vec3<f32>",
                    "array<u32, 3>",
                ];
                tokens[at] = random.pick(&types).to_owned();
            }
            (3, 0..4) => {
                let operators = [
                    "+", "-", "*", "/", "%", "<", ">", "&", "|", "^", "<<", ">>", "==", "=",
                ];
                tokens[at] = random.pick(&operators).to_owned();
            }
            (1.., 1..) => {
                let same: Vec<usize> = (0..tokens.len())
                    .filter(|other| class(&tokens[*other]) == class(&tokens[at]))
                    .collect();
                tokens[at] = tokens[same[random.below(same.len())]].clone();
            }
            (_, 0) => {
                let lines: Vec<&str> = others[random.below(others.len())].lines().collect();
                tokens[at].push_str(&format!("\n{}\n", lines[random.below(lines.len())]));
            }
            (_, 1) if tokens[at] == "\n" => {
                let end = (at + 1..tokens.len())
                    .find(|newline| tokens[*newline] == "\n")
                    .unwrap_or(at);
                tokens.drain(at..end);
            }
            _ => {}
        }
    }
    tokens.concat()
}

/// Runs each entry point of a text with tight limits, once with an observer. Returns false if the text is not valid.
fn survives(text: &str) -> bool {
    let Ok(shader) = Shader::parse(text) else {
        return false;
    };
    let limits = LaunchLimits {
        steps_per_workgroup: 20_000,
        steps: 40_000,
        memory: 1 << 24,
        ..LaunchLimits::default()
    };
    let launch = Launch {
        limits,
        subgroup_size: 4,
        ..Launch::new([2, 2, 1])
    };
    let mut buffers: Vec<Buffer> = (0..6).map(|at| Buffer::zeroed(0, at, 400)).collect();
    for (name, _) in shader.entry_points() {
        let launch = Launch {
            entry: Some(name),
            ..launch.clone()
        };
        _ = shader.run(&launch, &mut buffers, &mut ());
        _ = shader.run(&launch, &mut buffers, &mut PathReader);
    }
    true
}

/// Asks for the element of each access.
struct PathReader;

impl Observer for PathReader {
    fn access(&mut self, access: &Access<'_>) {
        for lane in access.lanes {
            assert!(!access.path(*lane).is_empty());
        }
    }
}

fn assert_no_panic(seeds: std::ops::Range<u64>) {
    let texts = texts();
    let undamaged = texts.iter().filter(|text| survives(text)).count();
    assert!(undamaged > 0, "no text is valid");
    let mut valid = 0;
    for seed in seeds {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = damage(&texts[random.below(texts.len())], &texts, &mut random);
        match catch_unwind(AssertUnwindSafe(|| survives(&text))) {
            Ok(is_valid) => valid += u32::from(is_valid),
            Err(_) => panic!("seed {seed}:\n{text}"),
        }
    }
    assert!(valid > 0, "no damaged text is valid");
}

#[test]
fn damaged_kernels_never_panic() {
    assert_no_panic(0..3000);
}

/// For an hour without company: `cargo test --release -- --ignored`, with `SEEDS` for another number of kernels.
#[test]
#[ignore = "takes minutes"]
fn many_damaged_kernels_never_panic() {
    let seeds = std::env::var("SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200_000);
    assert_no_panic(3000..seeds);
}
