//! One run as other versions of the tools write it: each version gives the same figures.

use gputrace::figures::Summary;
use gputrace::open;
use gputrace::proto::{self, Interned, InternedData, Packets, TracePacket, TrackDescriptor};
use gputrace::summary::summary;
use prost::Message;

use super::fixtures::{self, Header, Run, bytes};
use super::{figures_of, gzip};

/// Returns the figures that must not depend on the version: kernels, names, busy time, launches, launches without a kernel, copies, steps.
fn core(figures: &Summary) -> [Option<u64>; 7] {
    [
        Some(figures.kernels),
        Some(figures.distinct_names),
        figures.busy_ns,
        figures.launches,
        figures.launches_without_kernel,
        figures.copies.as_ref().map(|copies| copies.all.count),
        figures.steps.as_ref().map(|steps| steps.len() as u64),
    ]
}

fn run() -> Run {
    fixtures::run(3, 700, 250)
}

#[test]
fn events_have_the_same_kind_with_other_categories_or_none() {
    let text = fixtures::kineto(&run());
    let expected = core(&figures_of(text.as_str()));
    assert_eq!(expected[4], Some(0));
    let versions: [&[(&str, &str)]; 4] = [
        &[
            ("\"kernel\"", "\"Kernel\""),
            ("\"cuda_runtime\"", "\"Runtime\""),
            ("\"gpu_memcpy\"", "\"Memcpy\""),
        ],
        &[
            ("\"kernel\"", "\"gpu,kernel\""),
            ("\"cuda_runtime\"", "\"x, cuda_runtime\""),
        ],
        &[
            ("\"kernel\"", "\"rocm_kernel_dispatch\""),
            ("\"cuda_runtime\"", "\"rocm_hip_api\""),
            ("\"gpu_memcpy\"", "\"rocm_memory_copy\""),
        ],
        &[("\"cat\"", "\"was\"")],
    ];
    for version in versions {
        let other = version
            .iter()
            .fold(text.clone(), |text, (from, to)| text.replace(from, to));
        assert_ne!(other, text);
        assert_eq!(core(&figures_of(other)), expected, "{version:?}");
    }
    // Correlation numbers may be written as floats.
    let with_floats = text.replace(",\"grid\"", ".0,\"grid\"");
    assert_eq!(core(&figures_of(with_floats)), expected);
}

#[test]
fn a_byte_order_mark_does_not_matter_and_utf_16_is_refused() {
    let run = run();
    for text in [
        fixtures::kineto(&run),
        fixtures::chrome_open(&run),
        fixtures::kernel_trace(&run, Header::Guid),
        fixtures::kernel_stats(&run),
        fixtures::kern_sum(&run, true),
    ] {
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        let expected = core(&figures_of(text.as_str()));
        assert_eq!(core(&figures_of(marked.clone())), expected);
        assert_eq!(core(&figures_of(gzip(&marked))), expected);
        for has_mark in [true, false] {
            for bytes_of in [u16::to_le_bytes, u16::to_be_bytes] {
                let mark = has_mark.then_some('\u{feff}');
                let all: String = mark.into_iter().chain(text.chars()).collect();
                let wide: Vec<u8> = all.encode_utf16().flat_map(bytes_of).collect();
                let error = bytes("a", wide).unwrap_err().to_string();
                assert!(error.contains("UTF-16"), "{error}");
            }
        }
    }
}

/// Returns the names of a folder's files and their bytes, sorted.
fn files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_journal_beside_a_database_is_read_and_nothing_is_written_there() {
    for mode in ["wal", "delete"] {
        let writing = tempfile::tempdir().unwrap();
        let left = tempfile::tempdir().unwrap();
        let path = writing.path().join("a.db");
        fixtures::nsys(&fixtures::run(1, 400, 250), &path);
        let db = rusqlite::Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", mode).unwrap();
        drop(db);
        let kernels = |path: &std::path::Path| summary(&open(path, &mut |_| {}).unwrap()).kernels;
        assert_eq!(kernels(&path), 10);
        assert_eq!(files(writing.path()).len(), 1, "{mode}");
        // The files are copied while a program writes, as if it had been stopped.
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(
            "PRAGMA cache_size = 1; BEGIN; DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid > 4;
             CREATE TABLE filler AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 9000) SELECT i FROM r;",
        )
        .unwrap();
        if mode == "wal" {
            db.execute_batch("COMMIT").unwrap();
        }
        for (name, bytes) in files(writing.path())
            .iter()
            .filter(|(name, _)| !name.ends_with("-shm"))
        {
            std::fs::write(left.path().join(name), bytes).unwrap();
        }
        let before = files(left.path());
        assert_eq!(before.len(), 2, "{mode}");
        let expected = if mode == "wal" { 4 } else { 10 };
        assert_eq!(kernels(&left.path().join("a.db")), expected, "{mode}");
        assert_eq!(files(left.path()), before, "{mode}");
    }
}

#[test]
fn interned_names_are_valid_within_their_sequence_until_it_is_cleared() {
    let interned = |name: &str| InternedData {
        event_names: vec![Interned {
            iid: Some(1),
            name: Some(name.into()),
        }],
        event_categories: vec![Interned {
            iid: Some(1),
            name: Some(b"kernel_dispatch".to_vec()),
        }],
        ..InternedData::default()
    };
    let event = |kind: i32, sequence: u32, time: u64, track: u64| TracePacket {
        timestamp: Some(time),
        trusted_packet_sequence_id: Some(sequence),
        track_event: Some(proto::TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(track),
            name_iid: (kind == proto::BEGIN).then_some(1),
            category_iids: if kind == proto::BEGIN {
                vec![1]
            } else {
                Vec::new()
            },
            ..proto::TrackEvent::default()
        }),
        ..TracePacket::default()
    };
    let mut packet = Vec::new();
    for (sequence, track, name, at) in [(1, 11, "a", 100), (2, 12, "b", 200), (1, 11, "c", 300)] {
        packet.push(TracePacket {
            interned_data: Some(interned(name)),
            sequence_flags: Some(proto::CLEARED),
            ..event(proto::BEGIN, sequence, at, track)
        });
        packet.push(event(proto::END, sequence, at + 10, track));
        packet.push(event(proto::BEGIN, sequence, at + 20, track));
        packet.push(event(proto::END, sequence, at + 30, track));
    }
    // The descriptor of a track may follow its events.
    packet.push(TracePacket {
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(12),
            static_name: Some(b"COMPUTE Agent [3] QUEUE [0] GPU".to_vec()),
            ..TrackDescriptor::default()
        }),
        ..TracePacket::default()
    });
    let trace = bytes("a", Packets { packet }.encode_to_vec()).unwrap();
    let mut rows: Vec<(String, u64)> = summary(&trace)
        .table
        .iter()
        .map(|row| (row.name.clone(), row.calls))
        .collect();
    rows.sort();
    let expected = ["a", "b", "c"].map(|name| (name.to_owned(), 2));
    assert_eq!(rows, expected);
    assert_eq!(trace.devices, ["0", "3"]);
}
