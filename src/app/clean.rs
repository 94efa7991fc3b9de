//! Makes text and events from outside safe to draw and to keep: no control characters, no invisible marks that reorder text,
//! bounded length.

use crate::protocol::*;

/// Most rows kept of one kernel list or gradient audit.
const ROWS: usize = 512;
/// Most lints kept.
const LINTS: usize = 32;
/// Longest text taken over from an event or a file, in characters, where one line is meant.
pub const LINE: usize = 400;

/// One line of text: control characters and invisible direction marks become `·`, what is too long ends in `…`.
pub fn line(text: &str) -> String {
    bounded(text, LINE)
}

/// As `line`, with a limit of its own.
pub fn bounded(text: &str, limit: usize) -> String {
    let mut clean: String = text
        .chars()
        .take(limit)
        .map(|c| if harmful(c) { '·' } else { c })
        .collect();
    if text.chars().nth(limit).is_some() {
        clean.push('…');
    }
    clean
}

/// Whether a character could move the cursor, change modes or reorder what stands beside it.
pub fn harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Bounds the text and the lists of an event, and makes its text safe, before it is kept.
pub fn sanitize(mut event: Event) -> Event {
    match &mut event {
        Event::Kernels(kernels) => {
            kernels.rows.truncate(ROWS);
            for row in &mut kernels.rows {
                for text in [&mut row.part, &mut row.phase, &mut row.op, &mut row.kernel] {
                    *text = bounded(text, 80);
                }
                row.no_work = row.no_work.as_deref().map(line);
            }
            kernels.clock = bounded(&kernels.clock, 20);
            kernels.reason = kernels.reason.as_deref().map(line);
        }
        Event::Gradients(gradients) => {
            // The rows that matter are those without a gradient; they come first when there are too many.
            gradients.rows.sort_by_key(|row| row.norm.is_some());
            gradients.rows.truncate(ROWS);
            gradients
                .rows
                .iter_mut()
                .for_each(|row| row.name = bounded(&row.name, 80));
        }
        Event::Evidence(evidence) => {
            evidence.rms.truncate(ROWS);
            evidence.strides.truncate(16);
            for (name, strides) in &mut evidence.strides {
                *name = bounded(name, 40);
                strides.truncate(8);
            }
        }
        Event::Memory(memory) => memory.reason = memory.reason.as_deref().map(line),
        Event::Throughput(throughput) => throughput.clock = bounded(&throughput.clock, 20),
        Event::Lints { lints, .. } => {
            lints.truncate(LINTS);
            for lint in lints {
                for text in [&mut lint.name, &mut lint.why, &mut lint.next] {
                    *text = line(text);
                }
            }
        }
        Event::Started(started) => {
            started.config = bounded(&started.config, 40);
            started.run.variant = bounded(&started.run.variant, 20);
            sanitize_device(&mut started.device);
            sanitize_roof(started.roof.as_deref_mut());
        }
        Event::Finished(finished) => {
            finished.ended = finished.ended.as_deref().map(line);
            finished.variant = bounded(&finished.variant, 20);
            finished.lints.truncate(LINTS);
            sanitize_device(&mut finished.device);
        }
        Event::KernelChecked { report } => {
            sanitize_lines(&mut report.card);
            report.failed = report.failed.as_deref().map(line);
        }
        Event::KernelChecking { progress } => {
            sanitize_lines(&mut progress.card);
            progress.now = bounded(&progress.now, 200);
        }
        Event::KernelUsed {
            exercise,
            part,
            why_not,
        } => {
            *exercise = bounded(exercise, 80);
            *part = bounded(part, 80);
            *why_not = why_not.as_deref().map(line);
        }
        Event::Failed(failed) => failed.reason = bounded(&failed.reason, 1000),
        Event::Compiling { latest, .. } => *latest = bounded(latest, 80),
        Event::DeviceReady { device } => sanitize_device(device),
        Event::Calibrated { device, roof } => {
            sanitize_device(device);
            sanitize_roof(Some(roof));
        }
        Event::Devices { devices } => {
            devices.truncate(32);
            for info in devices {
                sanitize_device(&mut info.device);
                sanitize_roof(info.roof.as_mut());
                for text in [
                    &mut info.select,
                    &mut info.backend,
                    &mut info.driver,
                    &mut info.note,
                ] {
                    *text = bounded(text, 160);
                }
            }
        }
        Event::Pair(pair) => {
            pair.differs.truncate(32);
            pair.differs
                .iter_mut()
                .for_each(|path| *path = bounded(path, 60));
        }
        Event::Log(log) => {
            log.level = bounded(&log.level, 10);
            log.text = line(&log.text);
        }
        Event::Hello(hello) => {
            for text in [&mut hello.version, &mut hello.os, &mut hello.date] {
                *text = bounded(text, 40);
            }
        }
        Event::Heartbeat | Event::Step(_) | Event::Paused { .. } | Event::Resumed { .. } => {}
    }
    event
}

fn sanitize_roof(roof: Option<&mut Roof>) {
    if let Some(roof) = roof {
        roof.clock = bounded(&roof.clock, 20);
        roof.date = bounded(&roof.date, 20);
    }
}

fn sanitize_lines(card: &mut Vec<CardLine>) {
    card.truncate(64);
    for line in card {
        line.text = bounded(&line.text, 600);
    }
}

fn sanitize_device(device: &mut Device) {
    device.kind = bounded(&device.kind, 20);
    device.name = bounded(&device.name, 120);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_direction_marks_are_defused() {
        assert_eq!(line("a\u{1b}[2Jb\u{202e}c\r\n"), "a·[2Jb·c··");
        assert_eq!(bounded("abcdef", 3), "abc…");
        assert_eq!(line("naïve 表 √σ²"), "naïve 表 √σ²");
    }
}
