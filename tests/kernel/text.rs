//! Kernels that are refused from the text alone, each with the place, the offending text, the message, and what to write instead.

use perflings::shell::kernel_file;
use protocol::{KernelError, validate};

use super::{edited, job_of, solution_of};

/// Returns why the first file of a job is refused, as `line:column `text`: message`, and what to write instead; `None` if it is accepted.
pub(crate) fn refusal(job: &protocol::KernelJob) -> Option<(String, String)> {
    let file = &job.files[0];
    let validate = || validate::validate(&file.text, &file.spec, &job.shapes).err();
    // Deep expressions need the stack that a check has.
    let error = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(256 << 20)
            .spawn_scoped(scope, validate)
            .expect("a thread")
            .join()
            .expect("no panic")
    })?;
    Some((show(&error), error.instead))
}

fn show(error: &KernelError) -> String {
    if error.line == 0 {
        error.message.clone()
    } else {
        format!(
            "{}:{} `{}`: {}",
            error.line, error.column, error.text, error.message
        )
    }
}

/// Asserts that the solution of `swiglu` with `from` replaced by `to` is refused with this message and this advice.
#[track_caller]
fn assert_refused(from: &str, to: &str, message: &str, instead: &str) {
    let found = refusal(&edited("swiglu", from, to)).expect("it is refused");
    assert_eq!(found, (message.to_owned(), instead.to_owned()));
}

const TYPES: &str =
    "the same type on both sides: 1.0 is f32, 1u is u32, 1 is either; f32(x) and u32(x) convert";
const MAIN: &str =
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { … }";

#[test]
fn texts_that_are_not_valid_wgsl() {
    assert_refused(
        "let i = id.x;",
        "let i = id.x",
        "13:5 `if`: expected `;`, found \"if\"",
        "a `;` at the end of the statement before",
    );
    assert_refused(
        "s * up[i]",
        "s * upp[i]",
        "18:18 `upp`: no definition in scope for identifier: `upp`",
        "`up`, if that is what was meant, or declare `upp` first",
    );
    assert_refused(
        "s * up[i]",
        "s * i",
        "18:5 `out[i]`: automatic conversions cannot convert elements of `u32` to `f32`: a value \
         with elements of type f32 is required here",
        TYPES,
    );
    assert_refused(
        "let i = id.x;",
        "let i = i32(id.x);",
        "13:9 `i >= N`: Operation GreaterEqual cannot work with i32 and u32",
        TYPES,
    );
    assert_refused(
        "i >= N",
        "N",
        "13:9 `N`: the condition of this `if` is not a boolean scalar",
        "a comparison, such as i >= N",
    );
    assert_refused(
        "let s = g",
        "let s = 1.0; s = g",
        "17:18 `s`: invalid left-hand side of assignment: cannot assign to this expression",
        "`var` instead of `let` where it is declared",
    );
    assert_refused(
        "exp(-g)",
        "exp(-g, 1.0)",
        "17:24 `exp`: too many arguments passed to `exp`",
        "The `exp` function accepts at most 1 argument(s)",
    );
    assert_refused(
        "let s = g",
        "let z = 1u / 0u; let s = g",
        "17:13 `1u / 0u`: Division by zero",
        "a divisor that is not 0",
    );
    assert_refused(
        "@compute",
        "fn f(x: f32) -> f32 { return f(x); }\n@compute",
        "10:4 `f`: declaration of `f` is recursive",
        "a loop: WGSL functions may not call themselves, directly or through others",
    );
    assert_refused(
        "@compute",
        "fn f(x: f32) -> f32 { return g(x); }\nfn g(x: f32) -> f32 { return f(x); }\n@compute",
        "11:4 `g`: declaration of `f` is cyclic",
        "a loop: WGSL functions may not call themselves, directly or through others",
    );
    assert_refused(
        "s * up[i];\n}",
        "s * up[i];\n",
        "20:1 ``: expected statement, found the end of the file",
        "a `}` for every `{`",
    );
    assert_refused(
        "const N",
        "enable f16;\nconst N",
        "4:8 `f16`: `f16` is an extension that not every device has",
        "plain WGSL with f32",
    );
    assert_refused(
        "{{N}}u",
        "{{M}}u",
        "4:16 `{{M}}`: `M` is not a size of this exercise",
        "one of {{N}}; the nearest is {{N}}",
    );
}

#[test]
fn texts_without_any_code() {
    let mut job = job_of("swiglu", |_, _, _| Ok("hello {{N}} world".to_owned()));
    let (message, _) = refusal(&job).expect("it is refused");
    assert!(
        message.starts_with("1:1 `hello`: expected global item"),
        "{message}"
    );
    job.files[0].text = " \n\t\n".to_owned();
    assert_eq!(
        refusal(&job),
        Some((
            "the file is empty".to_owned(),
            "reset the exercise to get the starter back".to_owned()
        ))
    );
    job.files[0].text = "// nothing yet\n".to_owned();
    let message = "1:1 ``: there is no entry point: no function is marked @compute";
    assert_eq!(refusal(&job), Some((message.to_owned(), MAIN.to_owned())));
}

#[test]
fn entry_points_that_cannot_be_launched() {
    assert_refused(
        "@compute @workgroup_size(64)",
        "",
        "11:1 `fn main`: there is no entry point: no function is marked @compute",
        MAIN,
    );
    assert_refused(
        "fn main",
        "fn kernel",
        "11:1 `fn kernel`: the entry point is called `kernel`; only `main` is launched",
        "fn main",
    );
    assert_refused(
        "@compute",
        "@compute @workgroup_size(1) fn other() {}\n@compute",
        "12:1 `fn main`: there are 2 entry points, `other` and `main`; only one can be launched",
        "one @compute fn main, and plain functions that it calls",
    );
    assert_refused(
        "const N",
        "override W: u32 = 1u;\nconst N",
        "4:1 `override`: `W` is an override, and overrides are not set here",
        "`const`",
    );
}

#[test]
fn bindings_that_do_not_fit_the_exercise() {
    let third = "@group(0) @binding(2) var<storage, read_write> out: array<f32>;";
    assert_refused(
        "@binding(2)",
        "@binding(3)",
        "8:23 `var<storage, read_write> out: array<f32>;`: `out` is @group(0) @binding(3); this \
         exercise has @group(0) and bindings 0 to 2",
        third,
    );
    assert_refused(
        "@group(0) @binding(2)",
        "@group(1) @binding(2)",
        "8:23 `var<storage, read_write> out: array<f32>;`: `out` is @group(1) @binding(2); this \
         exercise has @group(0) and bindings 0 to 2",
        third,
    );
    assert_refused(
        "@binding(2)",
        "@binding(1)",
        "8:23 `var<storage, read_write> out: array<f32>;`: `up` and `out` are both @binding(1)",
        "a different number for each, 0 to 2",
    );
    assert_refused(
        third,
        "var<private> out: array<f32, 9>;",
        "@binding(2) is not declared",
        third,
    );
    assert_refused(
        "s * up[i]",
        "s",
        "7:23 `var<storage, read_write> up: array<f32>;`: `up` is never read: an unused binding \
         is removed, and the buffers no longer match",
        "a kernel that uses each of its 3 buffers",
    );
    assert_refused(
        "var<storage, read_write> gate",
        "var<storage, read> gate",
        "6:23 `var<storage, read> gate: array<f32>;`: `gate` is not var<storage, read_write>: \
         buffers share memory here, so every buffer is bound that way",
        "@group(0) @binding(0) var<storage, read_write> gate: array<f32>;",
    );
    for other in ["array<vec4<f32>>", "array<f32, 64>"] {
        let message =
            format!("8:23 `var<storage, read_write> out: {other};`: `out` is not array<f32>");
        assert_refused("out: array<f32>", &format!("out: {other}"), &message, third);
    }
}

#[test]
fn kernels_beyond_the_limits_of_every_device() {
    let sizes = [
        ("(64)", "(512)", "512 × 1 × 1 = 512"),
        ("(64)", "(32, 32)", "32 × 32 × 1 = 1024"),
        ("(64)", "(0)", "0 × 1 × 1 = 0"),
    ];
    for (from, to, size) in sizes {
        let message = format!(
            "10:10 `@workgroup_size`: a workgroup of {size} invocations; every device supports \
             up to 256, and up to 256 × 256 × 64 along x, y and z"
        );
        assert_refused(
            from,
            to,
            &message,
            "@workgroup_size(64), or (16, 16) for a matrix",
        );
    }
    assert_refused(
        "(64)",
        "(1)",
        "10:10 `@workgroup_size`: shape `small's feed-forward block` needs 2097152 workgroups \
         along x; every device launches up to 65535 along each axis",
        "a larger workgroup along x",
    );
    let mut job = edited(
        "swiglu",
        "@compute",
        "var<workgroup> tile: array<f32, 8192>;\n@compute",
    );
    job.files[0].text = job.files[0]
        .text
        .replace("out[i] =", "tile[i % 8192u] = g; out[i] =");
    let message = "10:1 `var<workgroup> tile: array<f32, 8192>;`: 32768 bytes of workgroup \
                   memory in shape `one element`; every device has 16384";
    assert_eq!(
        refusal(&job),
        Some((message.to_owned(), "smaller tiles".to_owned()))
    );
    assert_refused(
        "let s = g",
        "var many: array<f32, 4096>; let s = g",
        "17:5 `var many: array<f32, 4096>`: 16384 bytes of variables for each invocation in \
         shape `one element`; up to 8192 are allowed",
        "smaller arrays, or workgroup memory",
    );
}

#[test]
fn deep_and_long_texts_do_not_break_the_reader() {
    let sum = format!("s * up[i]{}", " + 1.0".repeat(30_000));
    assert_eq!(refusal(&edited("swiglu", "s * up[i]", &sum)), None);
    let nested = format!("{}s{} * up[i]", "(".repeat(3000), ")".repeat(3000));
    assert_eq!(
        refusal(&edited("swiglu", "s * up[i]", &nested)),
        Some((
            "18:133 `(`: more than 120 nested brackets".to_owned(),
            "less deeply nested expressions and blocks".to_owned()
        ))
    );
    let types = format!(
        "var t: {}f32{}; let s = g",
        "array<".repeat(3000),
        ", 2>".repeat(3000)
    );
    let (message, _) = refusal(&edited("swiglu", "let s = g", &types)).expect("it is refused");
    assert!(
        message.contains("17:") && message.contains("more than 120 nested brackets"),
        "{message}"
    );
    let (message, _) = refusal(&edited(
        "swiglu",
        "let s = g",
        &format!("let z = {}; let s = g", "9".repeat(200_000)),
    ))
    .expect("it is refused");
    assert!(
        message.starts_with("17:13 ")
            && message.contains("a number or a name of 200000 characters"),
        "{message}"
    );
    let cases: String = (0..5000)
        .map(|k| format!("case {k}u: {{ out[i] = {k}.0; }}\n"))
        .collect();
    let switch = format!("switch (i) {{ {cases} default: {{}} }} let s = g");
    let (message, _) = refusal(&edited("swiglu", "let s = g", &switch)).expect("it is refused");
    assert!(
        message.starts_with("11:1 ") && message.contains("5002 branches"),
        "{message}"
    );
    let types = format!(
        "var t: {}f32{}; let s = g",
        "array<".repeat(30),
        ", 2>".repeat(30)
    );
    let (message, instead) =
        refusal(&edited("swiglu", "let s = g", &types)).expect("it is refused");
    assert!(
        message.starts_with("17:12 ") && message.contains("type is too large"),
        "{message}"
    );
    assert_eq!(instead, "a smaller array; large data belongs in a buffer");
    let loads: String = (0..60)
        .map(|k| format!("a += up[(i + {k}u) % N];\n"))
        .collect();
    let twice = format!("fn f(i: u32) -> f32 {{ var a = 0.0;\n{loads} return a; }}\n@compute");
    assert_eq!(refusal(&edited("swiglu", "@compute", &twice)), None);
    let doubled: String = (0..60)
        .map(|k| format!("let b{} = b{k} + b{k}; ", k + 1))
        .collect();
    assert_eq!(
        refusal(&edited(
            "swiglu",
            "let s = g",
            &format!("let b0 = g; {doubled} let s = g")
        )),
        None
    );
}

#[test]
fn texts_that_would_take_gigabytes_are_refused_before_they_are_compiled() {
    assert_refused(
        "let s = g",
        "let big = array<f32, 25000000>();\n    let s = big[i % 7u] + g",
        "17:26 `25000000`: an array of 25000000 elements, 100000000 bytes; at most 65536 are \
         compiled, and the variables of an invocation may have 8192",
        "a smaller array; large data belongs in a buffer",
    );
    let many = (0..20).map(|k| format!("let b{k} = array<f32, 16000>()[i + {k}u];\n"));
    let job = edited(
        "swiglu",
        "let s = g",
        &format!("{} let s = g", many.collect::<String>()),
    );
    let (message, _) = refusal(&job).expect("it is refused");
    assert!(message.contains("320"), "{message}");
    let mut chain = "fn f0(x: f32) -> f32 { return sin(x) + 1.0; }\n".to_owned();
    for k in 1..28 {
        let called = k - 1;
        chain +=
            &format!("fn f{k}(x: f32) -> f32 {{ return f{called}(x) + f{called}(x + 1.0); }}\n");
    }
    let mut job = edited("swiglu", "@compute", &format!("{chain}@compute"));
    job.files[0].text = job.files[0].text.replace("s * up[i]", "f27(s) * up[i]");
    let (message, instead) = refusal(&job).expect("it is refused");
    assert!(message.contains("`: this function is "), "{message}");
    assert_eq!(
        instead,
        "a loop instead of calls that multiply, and smaller constructors"
    );
}

#[test]
fn files_that_cannot_be_read_as_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("starter.wgsl");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("writes");
        kernel_file::read(&path).map_err(|error| show(&error))
    };
    assert_eq!(
        read(b"fn main() {}\r\n\tx"),
        Ok("fn main() {}\r\n\tx".to_owned())
    );
    assert_eq!(
        read(b"\xef\xbb\xbffn main() {}"),
        Ok("fn main() {}".to_owned())
    );
    assert_eq!(
        read(b"fn\n \xff"),
        Err("2:2 ``: the file is not UTF-8 text from here on".to_owned())
    );
    assert_eq!(
        read(b"fn \0\0"),
        Err("1:4 ``: a control character: this is not a text file".to_owned())
    );
    assert_eq!(
        read(b"a\x1b[31m"),
        Err("1:2 ``: a control character: this is not a text file".to_owned())
    );
    let large = vec![b' '; 10 << 20];
    assert_eq!(
        read(&large),
        Err("the file has 10485760 bytes; the largest that is read has 262144".to_owned())
    );
    std::fs::remove_file(&path).expect("removes");
    let gone = kernel_file::read(&path).expect_err("the file is gone");
    assert!(
        gone.message
            .starts_with("starter.wgsl cannot be read: No such file"),
        "{}",
        gone.message
    );
    assert_eq!(gone.instead, "reset the exercise to get the starter back");
    let mut job = solution_of("swiglu");
    job.files[0].text = "/".repeat(300_000);
    assert_eq!(
        refusal(&job).map(|(message, _)| message),
        Some("the file has 300000 bytes; the largest that is read has 262144".to_owned())
    );
}

#[test]
fn the_number_of_workgroups_follows_from_the_workgroup_of_the_text() {
    let job = solution_of("block-size");
    let file = &job.files[0];
    let checked = validate::validate(&file.text, &file.spec, &job.shapes).expect("it is valid");
    assert_eq!(checked[1].grid, [4, 7, 1]);
    assert_eq!(checked[1].counts, [7 * 997; 3]);
    assert_eq!(validate::facts(&checked).workgroup, [256, 1, 1]);
}

#[test]
fn the_largest_shape_determines_the_workgroup_memory() {
    let job = edited(
        "swiglu",
        "@compute",
        "var<workgroup> kept: array<f32, {{N}}>;\n@compute",
    );
    let file = &job.files[0];
    let text = file.text.replace("s * up[i];", "s * up[i] + kept[0];");
    let mut shapes = job.shapes[..2].to_vec();
    for (shape, n) in shapes.iter_mut().zip([100, 10]) {
        shape.sizes.insert("N".to_owned(), n);
    }
    let checked = validate::validate(&text, &file.spec, &shapes).expect("it is valid");
    assert_eq!(validate::facts(&checked).workgroup_bytes, 400);
}
