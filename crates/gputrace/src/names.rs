//! Shortens the names of kernels, without templates, arguments and tile sizes, and finds the family of a kernel from its name.

use serde::Serialize;

/// The largest number of characters of a name in a table.
pub(crate) const LONGEST: usize = 60;

/// The kind of work that a kernel does, judged by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Matrix products and convolutions.
    Product,
    /// Fused attention.
    Attention,
    /// Work on single elements, gathers and fills included.
    Elementwise,
    /// Sums, norms, softmax, losses, sorts.
    Reduction,
    /// The step of an optimizer.
    Optimizer,
    /// Copies and memsets that are kernels.
    Copy,
    /// Collectives between ranks, which wait for other ranks and exchange data.
    Communication,
    /// Kernels whose names are not known.
    Other,
}

impl Family {
    /// Returns the name on the screen.
    pub fn label(self) -> &'static str {
        let names = "product attention elementwise reduction optimizer copy communication other";
        names.split(' ').nth(self as usize).unwrap_or_default()
    }
}

/// Parts of functions' names by family. The first family with a part of the name counts.
#[rustfmt::skip] // One line for each family.
const FAMILIES: [(Family, &[&str]); 13] = [
    // Our kernels, before their part of the model.
    (Family::Product, &[" linear "]),
    // Kernels of Triton are named by the operations in them.
    (Family::Reduction, &["triton_red", "triton_per"]),
    (Family::Elementwise, &["triton_poi"]),
    (Family::Product, &["triton_tem"]),
    (Family::Communication, &[
        "nccl", "rccl", "oneccl", "nvshmem", "msccl", "c10d::", "record_param_comms", "cross_device_reduce", "allreduce", "all_reduce",
        "allgather", "all_gather", "reducescatter", "reduce_scatter", "alltoall", "all_to_all", "sendrecv", "send_recv", "deep_ep",
        "multimem_", "ccl_kernel",
    ]),
    (Family::Copy, &["memcpy", "memset", "copybuffer", "fillbuffer", "direct_copy", "copy_kernel", "batchedcopy", "copyrect", "reshape_and_cache"]),
    (Family::Optimizer, &["adam", "multi_tensor_apply", "optimizer", "sgd", "lamb_", "lion_", "zero_grad"]),
    (Family::Attention, &["flash", "fmha", "attention", "attn", "mha_", "aotriton"]),
    (Family::Product, &[
        "gemm", "cijk_", "matmul", "xmma", "cutlass", "nvjet", "gemv", "splitk", "conv2d", "convolution", "implicit_con", "wgrad",
        "dgrad", "fprop", "winograd", "bmm_", "dot_kernel", "cublas", "hipblas", "mfma", "_mm_kernel", "linear_kernel",
        "aten::mm", "aten::bmm", "aten::addmm", "aten::linear",
    ]),
    (Family::Reduction, &[
        "reduce", "norm", "softmax", "_sum", "sum_", "mean", "argmax", "argmin", "nll", "loss", "cross_entropy", "scan", "cumsum",
        "sort", "topk", "histogram", "welford", "cunn_", "aten::sum",
    ]),
    // Convolutions, with an activation or without.
    (Family::Product, &["cudnn"]),
    (Family::Elementwise, &[
        "elementwise", "vectorized", "unrolled", "fill", "silu", "gelu", "relu", "swiglu", "sigmoid", "rope", "rotary",
        "embedding", "gather", "scatter", "index", "dropout", "activation", "arange", "residual", "add_kernel", "mul_kernel",
        "cast", "transpose", "distribution", "quantize", "aten::add", "aten::mul", "aten::sub", "aten::div", "aten::neg", "aten::pow",
    ]),
    (Family::Copy, &["copy"]),
];

/// Returns the family of a kernel. Its function's own name decides and, for a generic function, the operation that it applies. Other
/// arguments do not matter.
pub fn family(name: &str) -> Family {
    let (path, applied) = function(name);
    let own = match &applied {
        Some(Applied::Wrapped(arguments)) => wrapped(arguments).unwrap_or(arguments).to_owned(),
        Some(Applied::Generic(operation)) => format!("{} {operation}", last_segment(&path)),
        // A function called only `kernel` is named by its namespace.
        None => match path.strip_suffix("::kernel") {
            Some(space) => last_segment(space).to_owned(),
            None => last_segment(&path).to_owned(),
        },
    };
    let family_of = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let family = FAMILIES
            .iter()
            .find(|(_, parts)| parts.iter().any(|part| lower.contains(part)));
        family.map(|(family, _)| *family)
    };
    // Libraries of collectives, and operations of PyTorch, are known by their namespace.
    let by_namespace = family_of(&path)
        .filter(|family| *family == Family::Communication || path.starts_with("aten::"));
    by_namespace
        .or_else(|| family_of(&own))
        .unwrap_or(Family::Other)
}

/// The words that name a step, in lower case.
#[rustfmt::skip] // One line.
const STEPS: [&str; 7] = ["step", "iteration", "iter", "profilerstep", "train_step", "train step", "training step"];

/// Returns true if a range of this name is a step: `step 3`, `iteration 3`, `ProfilerStep#3`.
pub fn is_step(name: &str) -> bool {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let word = name[..name.len() - digits].trim_end_matches([' ', '#', '_', ':', '=']);
    digits > 0 && STEPS.iter().any(|step| word.eq_ignore_ascii_case(step))
}

/// A phase of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePhase {
    /// The forward pass.
    Forward,
    /// The backward pass.
    Backward,
    /// The step of an optimizer.
    Optimizer,
}

/// The names of ranges that are a phase.
#[rustfmt::skip] // One line for each phase.
const PHASES: [(TracePhase, &[&str]); 3] = [
    (TracePhase::Forward, &["forward", "fwd", "forward pass", "forward_pass", "## forward ##", "model_forward"]),
    (TracePhase::Backward, &["backward", "bwd", "backward pass", "backward_pass", "## backward ##", "loss.backward"]),
    (TracePhase::Optimizer, &["optimizer", "optim", "optimizer step", "optimizer_step"]),
];

/// The beginning of the name of an optimizer's range in PyTorch.
const OPTIMIZER_STEP: &str = "optimizer.step";

/// Returns the phase of a range, from its name; `None` if the name is not that of a phase.
pub fn phase(name: &str) -> Option<TracePhase> {
    let trimmed = name.trim();
    let is_name = |known: &&str| trimmed.eq_ignore_ascii_case(known);
    if let Some((phase, _)) = PHASES.iter().find(|(_, names)| names.iter().any(is_name)) {
        return Some(*phase);
    }
    let begin = trimmed.get(..OPTIMIZER_STEP.len())?;
    begin
        .eq_ignore_ascii_case(OPTIMIZER_STEP)
        .then_some(TracePhase::Optimizer)
}

/// The template arguments of a function that identify its computation.
enum Applied {
    /// The operation that a generic function applies: the name of its functor or inner kernel.
    Generic(String),
    /// All arguments of a function that only runs another.
    Wrapped(String),
}

/// Parts of the names of functions that apply an operation.
const GENERIC: [&str; 4] = [
    "elementwise",
    "reduce_kernel",
    "multi_tensor_apply",
    "index_kernel",
];
/// The names of functions that only run another.
const WRAPPERS: [&str; 3] = ["Kernel", "Kernel2", "device_kernel"];

/// Returns a kernel's function, with namespaces and without return type, templates and arguments, and the template arguments that
/// identify its computation.
fn function(name: &str) -> (String, Option<Applied>) {
    let named = name
        .replace("(anonymous namespace)", "_")
        .replace("<unnamed>", "_")
        .replace("(lambda", "_");
    let path = outer(&named);
    let base = last_segment(&path);
    let mut applied = None;
    if let Some((_, arguments)) = named.split_once('<') {
        if WRAPPERS.contains(&base) {
            applied = Some(Applied::Wrapped(arguments.to_owned()));
        } else if GENERIC.iter().any(|part| base.contains(part)) {
            let operation = inner(arguments, base);
            applied = operation.map(|word| Applied::Generic(word.to_owned()));
        }
    }
    (path, applied)
}

/// Returns a kernel's short name, in up to `width` characters, without return type, namespaces, templates, arguments and tile sizes. For
/// PyTorch's generic kernels, the operation is added: `vectorized_elementwise_kernel (add)`.
pub fn short(name: &str, width: usize) -> String {
    let (path, applied) = function(name);
    let folded = fold(last_segment(&path));
    let text = match applied {
        Some(Applied::Generic(word)) => format!("{folded} ({})", plain(&word)),
        Some(Applied::Wrapped(arguments)) => wrapped(&arguments).map_or(folded, plain),
        None => folded,
    };
    fit(if text.is_empty() { name } else { &text }, width)
}

/// Finds the name of the computation among the arguments of a function that only runs another: an operation, or else a class.
fn wrapped(arguments: &str) -> Option<&str> {
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':');
    let mut names = arguments.split(is_separator).map(last_segment);
    let is_class = |name: &&str| {
        name.len() > 3 && name.starts_with(char::is_uppercase) && family(name) != Family::Other
    };
    inner(arguments, "").or_else(|| names.find(is_class))
}

/// Returns the name outside of all brackets, without return type; the whole name if brackets do not match.
fn outer(name: &str) -> String {
    let mut depth = 0_i32;
    let mut outside = String::new();
    for c in name.chars() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = (depth - 1).max(0),
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    if depth > 0 {
        return name.to_owned();
    }
    let untyped = outside
        .trim()
        .trim_start_matches("void ")
        .trim_start_matches("static ");
    let plain = untyped.split(" [with").next().unwrap_or(untyped);
    plain.trim().to_owned()
}

/// Returns the last part of a name with namespaces.
fn last_segment(name: &str) -> &str {
    name.rsplit("::")
        .find(|part| !part.is_empty() && *part != "_")
        .unwrap_or(name)
}

/// Finds the operation of a generic kernel: the functor or the inner kernel among its template arguments. A functor that only wraps
/// another (`BinaryFunctor`) counts if there is no other.
fn inner<'a>(arguments: &'a str, known: &str) -> Option<&'a str> {
    let words = arguments.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut vague = None;
    for word in words.filter(|word| word.len() > 3 && *word != known) {
        // A kernel of CUTLASS has its architecture in its name, a namespace does not.
        if word.starts_with("cutlass_") && word.contains(|c: char| c.is_ascii_digit()) {
            return Some(word);
        }
        let is_operation = ["Functor", "_functor", "_kernel"]
            .into_iter()
            .any(|part| word.contains(part))
            || word.ends_with("Ops");
        if !is_operation || word.contains("elementwise") || word.starts_with("gpu_kernel") {
            continue;
        }
        match plain(word).as_str() {
            "" => {}
            "AUnary" | "BUnary" | "Binary" | "Unary" => vague = vague.or(Some(word)),
            _ => return Some(word),
        }
    }
    vague
}

/// Returns an operation without words such as `Functor`: `add` for `CUDAFunctor_add`.
fn plain(word: &str) -> String {
    if word.starts_with("cutlass_") {
        return fold(word);
    }
    let plain = word
        .trim_start_matches("CUDAFunctorOnSelf_")
        .trim_start_matches("CUDAFunctorOnOther_")
        .trim_start_matches("CUDAFunctor_");
    let ends = ["Functor", "_functor", "_kernel", "_cuda"];
    ends.into_iter()
        .fold(plain, |word, end| word.split(end).next().unwrap_or(word))
        .to_owned()
}

/// Returns a name without tile sizes and suffixes of compilers: `Cijk_Ailk_Bljk_SB`, `ampere_sgemm_nt`, `triton_red_fused_mean`.
fn fold(name: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_size = |word: &str| word.contains('x') && word.split('x').all(is_number);
    let is_numbered = |word: &str, prefix: &str| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // Triton marks arguments with known properties: `0d1d2d`.
    let is_specialisation = |word: &str| {
        word.len() > 2
            && word
                .bytes()
                .all(|b| b.is_ascii_digit() || b"dceD".contains(&b))
            && word.starts_with("0d")
    };
    let is_tensile = name.starts_with("Cijk_") || name.starts_with("Custom_Cijk");
    let settings = [
        "tilesize", "stage", "warpsize", "tensor", "align", "aligna", "alignc", "ldg",
    ];
    let mut words = Vec::new();
    for word in name.split('_') {
        // The names of Tensile's kernels end in their settings, which begin with the tile.
        if is_tensile && is_numbered(word, "MT") {
            break;
        }
        let is_dropped = is_size(word)
            || settings.iter().any(|prefix| is_numbered(word, prefix))
            || is_specialisation(word)
            || (name.contains("xmma")
                && matches!(word, "execute" | "kernel" | "" | "5x" | "cublas"));
        if !is_dropped {
            words.push(word);
        }
    }
    if name.starts_with("triton_") {
        words.pop_if(|word| is_number(word));
    }
    words.join("_")
}

/// Returns true for a character that could move the cursor, change modes, break a line of a table, hide, or reorder the text beside it:
/// control characters and those that Unicode calls default-ignorable, except for the variants of an emoji.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the first whole words of a text that fit in `width` characters. A bracket is kept or left out as a whole.
pub fn whole_words(mut text: &str, width: usize) -> &str {
    while text.chars().nth(width).is_some() {
        let at = text.rfind(" (").or(text.rfind(' ')).unwrap_or(0);
        text = &text[..at];
    }
    text
}

/// Cuts a text to at most `width` characters; a text that was cut ends in `…`.
fn fit(text: &str, width: usize) -> String {
    let mut fitted: String = text.chars().take(width).collect();
    if text.chars().nth(width).is_some() {
        fitted.pop();
        fitted.push('…');
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_for_people() {
        for (name, expected, family_is) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, \
                 at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, float)",
                "vectorized_elementwise_kernel (Mul)",
                Family::Elementwise,
            ),
            (
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, \
                 at::native::sum_functor<float>::operator()(at::TensorIterator&)::{lambda(float)#1}> > >(int)",
                "reduce_kernel (sum)",
                Family::Reduction,
            ),
            (
                "void (anonymous namespace)::softmax_warp_forward<float, 10, true>(float*, int)",
                "softmax_warp_forward",
                Family::Reduction,
            ),
            (
                "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(Params)",
                "cutlass_80_simt_sgemm_nt",
                Family::Product,
            ),
            (
                "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_kernel",
                "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n",
                Family::Product,
            ),
            (
                "Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1_SE_K1",
                "Cijk_Ailk_Bljk_SB",
                Family::Product,
            ),
            (
                "triton_red_fused_rsqrt_mean_pow_0d1d2d",
                "triton_red_fused_rsqrt_mean_pow",
                Family::Reduction,
            ),
            (
                "void flash_fwd_kernel<Flash_traits<64, 128>, true>(Params)",
                "flash_fwd_kernel",
                Family::Attention,
            ),
            (
                "__amd_rocclr_fillBufferAligned",
                "__amd_rocclr_fillBufferAligned",
                Family::Copy,
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnOther_add<float>, int>(int)",
                "vectorized_elementwise_kernel (add)",
                Family::Elementwise,
            ),
            ("aten::mul", "mul", Family::Elementwise),
            ("aten::addmm", "addmm", Family::Product),
            ("a\u{1b}[2Jb", "a\u{1b}[2Jb", Family::Other),
            ("<>", "<>", Family::Other),
            ("", "", Family::Other),
        ] {
            assert_eq!(short(name, 60), expected, "{name}");
            assert_eq!(family(name), family_is, "{name}");
        }
        assert_eq!(short("abcdefgh", 4), "abc…");
        let copy = "Memcpy HtoD (Pinned -> Device)";
        let whole = [30, 29, 11, 10, 5].map(|width| whole_words(copy, width));
        assert_eq!(whole, [copy, "Memcpy HtoD", "Memcpy HtoD", "Memcpy", ""]);
    }

    #[test]
    fn steps_and_phases_are_known_by_name() {
        let steps = [
            "step 1",
            "iteration 12",
            "ProfilerStep#0",
            "Step_3",
            "iter 4",
        ];
        assert!(steps.into_iter().all(is_step));
        let others = [
            "step",
            "stepping 1",
            "optimizer.step 1",
            "1",
            "",
            "my step 2 of 3",
        ];
        assert!(!others.into_iter().any(is_step));
        assert_eq!(
            phase("Optimizer.step#AdamW.step"),
            Some(TracePhase::Optimizer)
        );
        assert_eq!(phase("backward"), Some(TracePhase::Backward));
        assert_eq!(phase("forward_hook"), None);
    }
}
