//! Recognises messages of the system about something that it lacks, such as memory, and explains them in plain words.

/// Returns what the system lacks and what to do, if `text` has a message of the system about it.
pub fn lack(text: &str) -> Option<&'static str> {
    const MEMORY: &str = "memory is used up, or limited with `ulimit -v`";
    const THREADS: &str = "no more threads may be started: \
                           see `ulimit -u`, and `ulimit -v` for the memory of their stacks";
    const LACKS: [(&str, &str); 9] = [
        (
            "Too many open files",
            "too few files may be open: raise the limit with `ulimit -n 1024`",
        ),
        ("memory allocation of", MEMORY),
        ("Cannot allocate memory", MEMORY),
        ("failed to spawn thread", THREADS),
        ("ThreadPoolBuildError", THREADS),
        ("Failed to start a thread", THREADS),
        ("Resource temporarily unavailable", THREADS),
        ("No space left on device", "the disk is full"),
        (
            "File too large (os error",
            "files may not grow any more: see `ulimit -f`",
        ),
    ];
    LACKS
        .iter()
        .find(|(message, _)| text.contains(message))
        .map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_system_is_explained_in_plain_words() {
        let full = lack("Failed to write run.jsonl: No space left on device (os error 28)");
        assert_eq!(full, Some("the disk is full"));
        assert_eq!(lack("no such stage"), None);
    }
}
