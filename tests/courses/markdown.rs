//! A lesson's Markdown becomes sections with blocks.

use perflings::course::{SectionKind, TextBlock, TextSpan, lesson};

#[test]
fn markdown_becomes_blocks() {
    let source = "# T\n\n## Why <!-- why -->\n\nA **b** *c* `d` {{run.loss_first}} [e](f.md) <kbd>t</kbd>\n\n- one\n  - two\n\n1. x\n2. y\n\n```text\nz\n```\n\n> q\n\n| a | b |\n|---|---|\n| 1 | {{ln_vocab}} |\n\n---\n";
    let parsed = lesson::parse(source, "x.md");
    assert_eq!(parsed.problems, []);
    let section = &parsed.lesson.sections[0];
    assert_eq!(
        (section.title.as_str(), section.kind),
        ("Why", SectionKind::Why)
    );
    let TextBlock::Paragraph(spans) = &section.blocks[0] else {
        panic!("{:?}", section.blocks[0])
    };
    assert!(
        spans.contains(&TextSpan::Strong("b".into()))
            && spans.contains(&TextSpan::Emphasis("c".into()))
    );
    assert!(
        spans.contains(&TextSpan::Code("d".into())) && spans.contains(&TextSpan::Code("t".into()))
    );
    assert!(spans.contains(&TextSpan::Placeholder("run.loss_first".into())));
    assert!(spans.contains(&TextSpan::Link {
        text: "e".into(),
        to: "f.md".into()
    }));
    let markers: Vec<(u8, &str)> = section
        .blocks
        .iter()
        .filter_map(|block| match block {
            TextBlock::Item { depth, marker, .. } => Some((*depth, marker.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(markers, [(0, "•"), (1, "•"), (0, "1."), (0, "2.")]);
    assert!(
        section
            .blocks
            .contains(&TextBlock::Code { text: "z".into() })
    );
    assert!(
        section
            .blocks
            .contains(&TextBlock::Quote(vec![TextSpan::Text("q".into())]))
    );
    assert!(matches!(section.blocks.last(), Some(TextBlock::Rule)));
    let table = section.blocks.iter().find_map(|block| match block {
        TextBlock::Table { head, rows } => Some((head.len(), rows)),
        _ => None,
    });
    assert_eq!(
        table.expect("a table").1[0][1],
        [TextSpan::Placeholder("ln_vocab".into())]
    );
}
