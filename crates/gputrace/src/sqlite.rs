//! Reads both kinds of databases: opens them read-only, finds tables and columns by name, and explains errors.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row};

use super::file;
use super::model::TraceBuilder;
use super::source::{OpenError, TraceSource};

/// The offset of the byte with a database's journal mode.
const WRITE_VERSION: usize = 18;
/// The value of this byte for a database with a write-ahead log.
const WAL: u8 = 2;

/// Opens a file and respects the locks of other programs.
const READ_ONLY: &str = "?mode=ro";
/// Opens a file and ignores locks and journals.
const IMMUTABLE: &str = "?mode=ro&immutable=1";
/// Opens a copy of a file, to which SQLite applies the journal.
const COPIED: &str = "?mode=rw";

/// Opens the file of a source. Nothing is written to this file or its folder.
pub(crate) fn connect(source: &mut TraceSource<'_>) -> Result<Connection, OpenError> {
    let logged = source.head()?.get(WRITE_VERSION) == Some(&WAL);
    let file = source.file()?;
    let path = file.canonicalize().unwrap_or(file);
    let length =
        |ending| file::stream(&file::with_ending(&path, ending)).map_or(0, |(_, length)| length);
    let way = if length("-wal") > 0 {
        COPIED
    } else if logged {
        IMMUTABLE
    } else {
        READ_ONLY
    };
    let is_refused = |error: &rusqlite::Error| {
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure)
        )
    };
    let mut open = |way| {
        if way == COPIED {
            source.copy_with(&["-wal", "-journal"])?;
        }
        Ok(try_open(&source.file()?, way))
    };
    match open(way)? {
        // A program was stopped while it wrote, or the file system has no locks.
        Err(error) if is_refused(&error) && length("-journal") > 0 => open(COPIED)?,
        Err(error) if is_refused(&error) => open(IMMUTABLE)?,
        other => other,
    }
    .map_err(|error| explain(&error))
}

fn try_open(path: &Path, way: &str) -> rusqlite::Result<Connection> {
    let access = match way {
        COPIED => OpenFlags::SQLITE_OPEN_READ_WRITE,
        _ => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(uri(path) + way, flags)?;
    db.busy_timeout(Duration::from_millis(500))?;
    db.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;")?;
    db.query_row("SELECT COUNT(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(db)
}

/// Returns a path as a URI, in which other characters than letters, digits and `/._-` are escaped.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri
}

/// Explains an error of the database.
pub(crate) fn explain(error: &rusqlite::Error) -> OpenError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::new(
            "is a database that another program has locked.",
            "Wait until the profiler has finished, or copy the file and open the copy.",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => OpenError::new(
            format!("is a damaged or incomplete database ({error})."),
            "Copy it again, or run `sqlite3 FILE .recover | sqlite3 NEW` and open NEW.",
        ),
        _ => OpenError::new(
            format!("is a database that cannot be read ({error})."),
            "Check that it comes from nsys 2022 or later, or from ROCm 7.",
        ),
    }
}

/// Returns the names of all tables and views.
pub(crate) fn tables(db: &Connection) -> Result<Vec<String>, OpenError> {
    let query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')";
    texts(db, query, []).map_err(|error| explain(&error))
}

/// Returns the names of the columns of a table or view; empty if there is no such table.
pub(crate) fn columns(db: &Connection, table: &str) -> Vec<String> {
    texts(db, "SELECT name FROM pragma_table_info(?1)", [table]).unwrap_or_default()
}

/// Returns the first column of a query as texts.
pub(crate) fn texts(
    db: &Connection,
    query: &str,
    with: impl Params,
) -> rusqlite::Result<Vec<String>> {
    let mut query = db.prepare(query)?;
    query.query_map(with, |row| row.get(0))?.collect()
}

/// Returns a `SELECT` of columns of a table, with NULL for missing columns. Names come from this crate, never from the file.
fn select(db: &Connection, table: &str, wanted: &[&str]) -> String {
    let existing = columns(db, table);
    let column = |name: &&str| {
        if existing
            .iter()
            .any(|other| other.eq_ignore_ascii_case(name))
        {
            format!("\"{name}\"")
        } else {
            "NULL".to_owned()
        }
    };
    let list: Vec<String> = wanted.iter().map(column).collect();
    format!("SELECT {} FROM \"{table}\"", list.join(", "))
}

/// A function that returns the place of a row: `kernels row 7`.
type RowPlace<'a> = &'a dyn Fn() -> String;

/// Calls `read_row` with the wanted columns of every row of a table. If it returns a reason as an error, the row counts as unread.
pub(crate) fn rows(
    db: &Connection,
    table: &str,
    wanted: &[&str],
    out: &mut TraceBuilder,
    mut read_row: impl FnMut(&mut TraceBuilder, &Row<'_>, RowPlace<'_>) -> Result<(), String>,
) {
    let mut count = 0_u64;
    let mut run = || -> rusqlite::Result<()> {
        let mut prepared = db.prepare(&select(db, table, wanted))?;
        let mut rows = prepared.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            let place = || format!("{table} row {count}");
            if let Err(why) = read_row(out, row, &place) {
                out.unread(&why, place);
            }
            if out.is_full() {
                // A view may have infinitely many rows.
                out.unread(&format!("{table} has more rows than fit in memory"), place);
                break;
            }
        }
        Ok(())
    };
    if let Err(error) = run() {
        let why = format!("reading {table} failed: {error}");
        out.unread(&why, || format!("{table} row {}", count + 1));
        if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt)) {
            let why = format!("The database is damaged: {table} ends after row {count}.");
            out.trace().truncated = Some(why);
        }
    }
}

/// Returns start and end, the first two columns, in nanoseconds.
pub(crate) fn span(row: &Row<'_>) -> Result<(i128, i128), String> {
    match (int(row, 0), int(row, 1)) {
        (Some(start), Some(end)) => Ok((start.into(), end.into())),
        _ => Err("a row without start or end".to_owned()),
    }
}

/// Returns a size in x, y and z, from three columns beginning with `from`; `None` if one of them is not a size.
pub(crate) fn three(row: &Row<'_>, from: usize) -> Option<[u32; 3]> {
    let size = |at: usize| u32::try_from(int(row, at)?).ok();
    Some([size(from)?, size(from + 1)?, size(from + 2)?])
}

/// Returns the number that a call shares with the work that it launched.
pub(crate) fn correlation(row: &Row<'_>, at: usize) -> Option<u64> {
    int(row, at).map(|number| number as u64)
}

/// Returns an integer of a row; `None` if it is NULL or not a number.
pub(crate) fn int(row: &Row<'_>, at: usize) -> Option<i64> {
    match row.get_ref(at).ok()? {
        rusqlite::types::ValueRef::Integer(number) => Some(number),
        rusqlite::types::ValueRef::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Returns a text of a row, with replacements for what is not UTF-8, or the digits of a number; `None` for anything else.
pub(crate) fn text(row: &Row<'_>, at: usize) -> Option<String> {
    match row.get_ref(at).ok()? {
        rusqlite::types::ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        rusqlite::types::ValueRef::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
