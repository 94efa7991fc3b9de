//! A lesson's Markdown becomes sections with blocks.

use perflings::course::{LessonSection, SectionKind, TextBlock, TextSpan, lesson};

const SOURCE: &str = "\
# The title of the stage

## Why <!-- why -->

A **b** *c* `d` {{run.loss_first}} [e](f.md) <kbd>t</kbd>

- one
  - two

1. x
2. y

```text
z
```

> q

| a | b |
|---|---|
| 1 | {{ln_vocab}} |

---
";

/// Returns the only section of the lesson.
fn section() -> LessonSection {
    let parsed = lesson::parse(SOURCE, "x.md");
    assert_eq!(parsed.problems, []);
    let [section] = &parsed.lesson.sections[..] else {
        panic!("{:?}", parsed.lesson)
    };
    section.clone()
}

#[test]
fn a_section_has_the_kind_in_the_comment_of_its_heading() {
    let section = section();
    assert_eq!(section.title, "Why");
    assert_eq!(section.kind, SectionKind::Why);
}

#[test]
fn styles_links_keys_and_figures_become_spans() {
    let section = section();
    let TextBlock::Paragraph(spans) = &section.blocks[0] else {
        panic!("{:?}", section.blocks[0])
    };
    for span in [
        TextSpan::Strong("b".into()),
        TextSpan::Emphasis("c".into()),
        TextSpan::Code("d".into()),
        TextSpan::Placeholder("run.loss_first".into()),
        TextSpan::Link {
            text: "e".into(),
            to: "f.md".into(),
        },
        TextSpan::Code("t".into()),
    ] {
        assert!(spans.contains(&span), "{span:?} is not in {spans:?}");
    }
}

#[test]
fn items_keep_the_depth_and_the_marker_of_their_list() {
    let markers: Vec<(u8, String)> = section()
        .blocks
        .into_iter()
        .filter_map(|block| match block {
            TextBlock::Item { depth, marker, .. } => Some((depth, marker)),
            _ => None,
        })
        .collect();
    let expected = [(0, "•"), (1, "•"), (0, "1."), (0, "2.")];
    assert_eq!(
        markers,
        expected.map(|(depth, marker)| (depth, marker.to_owned()))
    );
}

#[test]
fn code_quotes_tables_and_rules_become_blocks() {
    let text = |text: &str| vec![TextSpan::Text(text.into())];
    let figure = vec![TextSpan::Placeholder("ln_vocab".into())];
    let blocks = section().blocks;
    assert_eq!(
        blocks[blocks.len() - 4..],
        [
            TextBlock::Code { text: "z".into() },
            TextBlock::Quote(text("q")),
            TextBlock::Table {
                head: vec![text("a"), text("b")],
                rows: vec![vec![text("1"), figure]],
            },
            TextBlock::Rule,
        ]
    );
}
