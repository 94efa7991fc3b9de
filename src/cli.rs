//! The command line: parses the arguments and calls the command, which is a file of its own in `cli/`. Results are printed on stdout,
//! notices and errors on stderr. A command returns its exit code and does not end the process.

mod args;
mod bench;
mod check;
mod compare;
mod config;
mod course_check;
mod course_new;
mod doctor;
mod exercise;
mod export;
mod kit;
mod list;
mod manual;
mod meter;
#[cfg(unix)]
mod notes;
mod open;
mod ready;
mod replay;
mod room;
mod run;
mod saved;
mod stage_table;
mod summary;
mod values;
mod variant;
mod watch;
mod workshop;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

pub use crate::out::{Exit, ExitError};

use args::exercises::CourseCommand;
use args::{Cli, CliCommand};

use crate::course::context::CourseContext;
use crate::course::embedded;
use crate::out;
use crate::settings::Settings;
use protocol::handle::EngineCommand;

/// A function that reads commands from stdin and serves as the engine until its input ends. With `kernel_texts` it also sends the texts
/// of the kernels that it compiles.
pub type ServeEngine = fn(kernel_texts: bool) -> anyhow::Result<()>;

/// Runs the program with the arguments of this process. `course` is the course inside the program, and `serve_engine` is what
/// `perflings engine` does.
pub fn main(course: embedded::EmbeddedFolders, serve_engine: ServeEngine) -> ExitCode {
    embedded::set(course);
    out::print_panics();
    report_size_limit_as_error();
    ExitCode::from(run(std::env::args_os(), serve_engine) as u8)
}

/// Makes a write beyond the limit on file size (`ulimit -f`) fail with an error, as on a full disk. Without this the system would end the
/// program. Child processes are not affected.
fn report_size_limit_as_error() {
    #[cfg(unix)]
    {
        // When the signal is caught, the write returns an error. If it cannot be caught, the program ends as before.
        let _ =
            signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    }
}

/// Runs the program with these arguments. The first one is the program's own name.
pub fn run(
    args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    serve_engine: ServeEngine,
) -> Exit {
    let words: Vec<OsString> = args.into_iter().map(Into::into).collect();
    // The engine uses no settings: notices about them would go to a program that reads its output.
    let settings = if words.get(1).is_some_and(|word| word == "engine") {
        Settings::default()
    } else {
        config::usable()
    };
    let mut grammar = config::with_settings(Cli::command(), &settings);
    let parsed = grammar.try_get_matches_from_mut(words).and_then(|matches| {
        refuse_flags_before_command(&mut grammar, &matches)?;
        Cli::from_arg_matches(&matches)
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // clap reports `--help` and `--version` as errors with exit code 0. Their text is this program's, so it needs no cleaning.
            if error.exit_code() == 0 {
                drop(error.print());
                return Exit::Ok;
            }
            match name_in_place_of_command(&error) {
                Some(refusal) => return out::report(&refusal),
                None => out::error(error.render().to_string().trim_end()),
            }
            return Exit::Usage;
        }
    };
    out::set_quiet(cli.global.quiet, cli.global.no_progress);
    if let Some(threads) = cli.global.threads {
        EngineCommand::limit_threads(threads);
    }
    match dispatch(cli, serve_engine) {
        Ok(exit) => exit,
        Err(error) => out::report(&error),
    }
}

/// Returns the error for a name of the course that was typed where a command belongs, as in `perflings 3`; it names the right command.
/// `None` if the word is no name of the course.
fn name_in_place_of_command(error: &clap::Error) -> Option<anyhow::Error> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let context = CourseContext::load(None).ok()?;
    let (what, instead) = variant::meaning(name, &context)?;
    Some(variant::refused(name, what, "a command", &instead))
}

/// Refuses flags of the workshop that were typed before a command, as in `perflings --stage 3 run`. clap's
/// `args_conflicts_with_subcommands` would also refuse flags that every command takes, such as `--quiet`.
fn refuse_flags_before_command(
    grammar: &mut Command,
    matches: &ArgMatches,
) -> Result<(), clap::Error> {
    let Some(command) = matches.subcommand_name() else {
        return Ok(());
    };
    let flag = grammar
        .get_arguments()
        .filter(|arg| !arg.is_global_set())
        .find(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
        .and_then(|arg| arg.get_long());
    let Some(flag) = flag else {
        return Ok(());
    };
    let why = format!(
        "`--{flag}` stands before `{command}`; write it after the command: \
         `perflings {command} --{flag} …`, if `{command}` takes it"
    );
    Err(grammar.error(ErrorKind::ArgumentConflict, why))
}

fn dispatch(cli: Cli, serve_engine: ServeEngine) -> anyhow::Result<Exit> {
    match cli.command {
        None => workshop::workshop(&cli.workshop),
        Some(CliCommand::Run(args)) => run::run(&args),
        Some(CliCommand::Mystery(args)) => workshop::mystery(&args),
        Some(CliCommand::Compare(args)) => compare::compare(&args),
        Some(CliCommand::Bench(args)) => bench::bench(&args),
        Some(CliCommand::Check(args)) => check::check(&args),
        Some(CliCommand::Course(CourseCommand::Check(args))) => course_check::check(&args),
        Some(CliCommand::Course(CourseCommand::New(args))) => course_new::new(&args),
        Some(CliCommand::List(args)) => list::list(&args),
        Some(CliCommand::Hint(args)) => list::hint(&args),
        Some(CliCommand::Reset(args)) => list::reset(&args),
        Some(CliCommand::Init(args)) => list::init(&args),
        Some(CliCommand::Kit(args)) => kit::kit(&args),
        Some(CliCommand::Doctor(args)) if args.room => ready::ready(&args),
        Some(CliCommand::Doctor(args)) => doctor::doctor(&args),
        Some(CliCommand::Replay(args)) => replay::replay(&args),
        Some(CliCommand::Watch(args)) => watch::watch(&args),
        Some(CliCommand::Open(args)) => open::open(&args),
        #[cfg(unix)]
        Some(CliCommand::Notes(args)) => notes::notes(&args),
        #[cfg(not(unix))]
        Some(CliCommand::Notes(_)) => Err(out::usage("the speaker view needs a Unix system")),
        Some(CliCommand::Report(args)) => export::report(&args),
        Some(CliCommand::Export(args)) => export::export(&args),
        Some(CliCommand::Room(args)) => room::room(&args),
        Some(CliCommand::Config(args)) => config::config(&args),
        Some(CliCommand::Completions(args)) => manual::completions(&args),
        Some(CliCommand::Man(args)) => manual::man(&args),
        Some(CliCommand::Engine { kernel_texts }) => serve_engine(kernel_texts).map(|()| Exit::Ok),
    }
}
