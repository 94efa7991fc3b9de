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
                cut(
                    [&mut row.part, &mut row.phase, &mut row.op, &mut row.kernel],
                    80,
                );
                cut(&mut row.no_work, LINE);
            }
            cut([&mut kernels.clock], 20);
            cut(&mut kernels.reason, LINE);
        }
        Event::Gradients(gradients) => {
            // The rows that matter are those without a gradient; they come first when there are too many.
            gradients.rows.sort_by_key(|row| row.norm.is_some());
            gradients.rows.truncate(ROWS);
            cut(gradients.rows.iter_mut().map(|row| &mut row.name), 80);
        }
        Event::Evidence(evidence) => {
            evidence.rms.truncate(ROWS);
            evidence.strides.truncate(16);
            for (name, strides) in &mut evidence.strides {
                cut([name], 40);
                strides.truncate(8);
            }
        }
        Event::Memory(memory) => cut(&mut memory.reason, LINE),
        Event::Throughput(throughput) => cut([&mut throughput.clock], 20),
        Event::Lints { lints, .. } => {
            lints.truncate(LINTS);
            for lint in lints {
                cut([&mut lint.name, &mut lint.why, &mut lint.next], LINE);
            }
        }
        Event::Started(started) => {
            cut([&mut started.config], 40);
            cut([&mut started.run.variant], 20);
            sanitize_device(&mut started.device);
            sanitize_roof(started.roof.as_deref_mut());
        }
        Event::Finished(finished) => {
            cut(&mut finished.ended, LINE);
            cut([&mut finished.variant], 20);
            finished.lints.truncate(LINTS);
            sanitize_device(&mut finished.device);
        }
        Event::KernelChecked { report } => {
            sanitize_card(&mut report.card);
            cut(&mut report.failed, LINE);
        }
        Event::KernelChecking { progress } => {
            sanitize_card(&mut progress.card);
            cut([&mut progress.now], 200);
        }
        Event::KernelUsed {
            exercise,
            part,
            why_not,
        } => {
            cut([exercise, part], 80);
            cut(why_not, LINE);
        }
        Event::Failed(failed) => cut([&mut failed.reason], 1000),
        Event::Compiling { latest, .. } => cut([latest], 80),
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
                let backend = [&mut info.backend, &mut info.driver];
                cut(
                    [&mut info.select, &mut info.note]
                        .into_iter()
                        .chain(backend),
                    160,
                );
            }
        }
        Event::Pair(pair) => {
            pair.differs.truncate(32);
            cut(&mut pair.differs, 60);
        }
        Event::Log(log) => {
            cut([&mut log.level], 10);
            cut([&mut log.text], LINE);
        }
        Event::Hello(hello) => cut([&mut hello.version, &mut hello.os, &mut hello.date], 40),
        Event::Heartbeat | Event::Step(_) | Event::Paused { .. } | Event::Resumed { .. } => {}
    }
    event
}

/// Makes texts safe and at most `limit` characters long.
fn cut<'a>(texts: impl IntoIterator<Item = &'a mut String>, limit: usize) {
    for text in texts {
        *text = bounded(text, limit);
    }
}

fn sanitize_roof(roof: Option<&mut Roof>) {
    if let Some(roof) = roof {
        cut([&mut roof.clock, &mut roof.date], 20);
    }
}

fn sanitize_card(card: &mut Vec<CardLine>) {
    card.truncate(64);
    cut(card.iter_mut().map(|line| &mut line.text), 600);
}

fn sanitize_device(device: &mut Device) {
    cut([&mut device.kind], 20);
    cut([&mut device.name], 120);
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
