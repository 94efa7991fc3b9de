//! Checks lists in documents that follow from a table in the code.

use std::path::Path;

/// Asserts that the file has the text `wanted` between `<!-- NAME … -->` and `<!-- end of NAME -->`. If the environment variable
/// `UPDATE_README` is set, writes the text there instead.
#[track_caller]
pub(crate) fn holds(file: &str, name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).expect("a README");
    let end = format!("<!-- end of {name} -->");
    let (before, rest) = text.split_once(&format!("<!-- {name}")).expect("a mark");
    let (mark, rest) = rest.split_once("-->\n").expect("its end");
    let (written, after) = rest.split_once(&end).expect("a mark");
    if std::env::var_os("UPDATE_README").is_some() {
        let updated = format!("{before}<!-- {name}{mark}-->\n{wanted}{end}{after}");
        return std::fs::write(path, updated).expect("written");
    }
    assert_eq!(written, wanted, "UPDATE_README=1 writes it");
}
