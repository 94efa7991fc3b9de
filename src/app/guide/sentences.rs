//! Every fixed sentence of the line with the next move, and the questions of confirmations. A name in braces is the key of an action:
//! `{pair}: measure both` is shown as `T: measure both`. Sentences that hold figures or names of the course are made where they are chosen.

use super::SentencePart;
use crate::app::{Action as A, App, Overlay};

/// A fixed sentence, named by the situation in which it is shown. It fits one line of the smallest screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str)]
pub enum Sentence {
    // An open card, or a value that is being typed.
    #[strum(serialize = "Type a value for B. {keep-value}: use it · {close}: cancel")]
    TypesValue,
    #[strum(serialize = "Press any key to close this card")]
    Welcome,
    #[strum(serialize = "You skipped these stages. {page}: next page · {close}: continue here")]
    SkippedStages,
    #[strum(serialize = "Type one letter to vote; only your first letter counts")]
    Vote,
    #[strum(serialize = "{choose}: take the marked line · {close}: close the list")]
    List,
    #[strum(serialize = "{close}: go back to where you were")]
    Card,

    // A training of another program, or a recording.
    #[strum(serialize = "The training has ended. {glossary}: read about its first lint")]
    WatchedEnded,
    #[strum(serialize = "A and B stand side by side. {glossary}: read about the first lint")]
    WatchedBoth,
    #[strum(serialize = "{mark-b}: begin B here · {glossary}: read about the first lint")]
    Watched,
    #[strum(serialize = "This is a recording. {pause}: pause · {step}: advance one step")]
    Recording,

    // An engine or a run that failed, and runs without a stage.
    #[strum(serialize = "The run stopped on matrix cores. \
        {restart}: try again · {in-f32}: run it in f32")]
    StoppedOnMatrixCores,
    #[strum(serialize = "The engine is gone. {restart}: start a new engine")]
    EngineGone,
    #[strum(serialize = "{restart}: try again · {devices}: list the devices · \
        {close}: close this card")]
    RunFailed,
    #[strum(serialize = "{knobs}: open the knobs · {toggle}: toggle A and B · \
        {pair}: measure both")]
    FreeRun,
    #[strum(serialize = "This course has no stages")]
    NoStages,

    // A mystery.
    #[strum(serialize = "{next}: begin the next mystery · {list}: show the whole course")]
    MysteryEnded,
    #[strum(serialize = "B is being judged: first it trains again from step 0")]
    JudgedAlone,
    #[strum(serialize = "B is being judged: now it runs in turns with a known-good configuration")]
    JudgedInPairs,
    #[strum(serialize = "Something is wrong. {focus}: change the panel · {knobs}: open the knobs")]
    MysteryUnchanged,
    #[strum(serialize = "{knob-up} {knob-down}: choose a knob · \
        {knob-less} {knob-more}: change it in B")]
    MysteryKnobs,
    #[strum(serialize = "{knobs}: change B · {toggle}: toggle A and B · \
        {pair}: ask for the verdict")]
    MysteryChanged,
    #[strum(serialize = "B runs your change. {toggle}: toggle A and B · \
        {pair}: ask for the verdict")]
    MysteryChangedAtKnobs,

    // The open knobs.
    #[strum(serialize = "{knob-up} {knob-down}: choose a knob · \
        {knob-less} {knob-more}: change it · {knobs}: close")]
    KnobsUnchanged,
    #[strum(serialize = "A and B run in turns; a change of B restarts the pairs")]
    KnobsInPairs,
    #[strum(serialize = "B restarts with your change in a moment")]
    ChangeIsDue,
    #[strum(serialize = "Pairs are done, nothing runs. {restart}: train again · \
        {knobs}: open the knobs")]
    PairsEnded,
    #[strum(serialize = "The stage is passed. {knobs}: close the knobs · \
        {lesson}: go on in the lesson")]
    PassedAtKnobs,
    #[strum(serialize = "A runs. {toggle}: toggle to B with your change · {pair}: measure both")]
    ARuns,
    #[strum(serialize = "B runs with your change. {toggle}: toggle to A · {pair}: measure both")]
    BRuns,

    // The prediction of a stage.
    #[strum(serialize = "Estimate how much. {lesson}: go back to the question")]
    EstimateInLesson,
    #[strum(serialize = "Look at the panels. {lesson}: read the lesson and predict")]
    PredictInLesson,
    #[strum(serialize = "How much? {down} {up}: place a range on the scale, or type the figure")]
    PlaceRange,
    #[strum(
        serialize = "How much? {down} {up}: move · {wider} {narrower}: resize · \
        {keep}: keep the range"
    )]
    KeepRange,
    #[strum(serialize = "Answer the question: {a} to {last} · {page}: read on")]
    AnswerOrReadOn,
    #[strum(serialize = "Answer the question: {a} to {last}")]
    Answer,

    // The evidence of a stage.
    #[strum(serialize = "{pointer}: continue to the cause")]
    LastPointer,
    #[strum(serialize = "{pointer}: show the next panel · {close}: return to the lesson")]
    NextPointer,
    #[strum(
        serialize = "Which number? {focus}: change panel · {row}: change row · \
        {locate}: choose it"
    )]
    Locate,
    #[strum(
        serialize = "Now look for it. {pointer}: show one panel after the other, \
        then the cause"
    )]
    FirstPointer,
    #[strum(serialize = "{lesson}: show where to look")]
    EvidenceInLesson,

    // The fix of a stage, and its checks.
    #[strum(serialize = "Read the background. {page}: continue to the cause")]
    Background,
    #[strum(serialize = "Read the cause, then fix it. {knobs}: open the knobs of your B")]
    Cause,
    #[strum(serialize = "Fix it. {knobs}: open the knobs of your B · {lesson}: show the cause")]
    Fix,
    #[strum(serialize = "A and your B run in turns until the verdict is clear")]
    InPairs,
    #[strum(serialize = "The knobs change at the next step")]
    Switching,
    #[strum(serialize = "Passed. Your range is not checked yet. {pair}: compare A and B in pairs")]
    RangeUnchecked,
    #[strum(serialize = "{toggle}: toggle A and B · {pair}: measure both · {knobs}: change B")]
    Check,

    // Looking back at a stage.
    #[strum(serialize = "{lesson}: open the lesson to look back at your prediction")]
    LookBackInLesson,
    #[strum(serialize = "Answer the question: {a} to {last} · \
        {page}: show the rest of the reasons")]
    AnswerOrReasons,
    #[strum(serialize = "Answer the question: {a} to {last} · {page-back}: turn back")]
    AnswerOrTurnBack,
    #[strum(serialize = "{question}: go to the questions · {page}: read on")]
    Questions,
    #[strum(serialize = "{question}: go to the questions · {page}: read on to your result")]
    QuestionsOrResult,
    #[strum(serialize = "Look back at your prediction. {next}: next stage · \
        {list}: show the course")]
    NextStage,
    #[strum(serialize = "The last stage is done. {summary}: see your results · \
        {list}: show the course")]
    LastStage,

    // A recorded run with a hidden fault.
    #[strum(serialize = "Look again with the answer in mind. {leave}: go back to the stage")]
    FaultNamed,
    #[strum(
        serialize = "Name the fault: {a} to {last} · {focus}: change the panel · \
        {pause}: pause"
    )]
    NameFault,
    #[strum(serialize = "This recording has a fault. {focus}: change panel · \
        {lesson}: show the question")]
    FaultInLesson,

    // Exercises.
    #[strum(serialize = "{lesson}: open the exercise · {leave}: go back to the stage")]
    ExerciseInLesson,
    #[strum(serialize = "{next}: begin the next exercise · {list}: list all of them")]
    NextExercise,
    #[strum(serialize = "Your kernel is being checked; the stage's run waits")]
    KernelChecked,
    #[strum(serialize = "{edit}: open the file in your editor · {hint}: read a hint")]
    EditKernel,
    #[strum(serialize = "Nothing was checked. The card says what to do")]
    CheckFailed,
    #[strum(
        serialize = "{next}: begin the next exercise · {solution}: see the solution · \
        {leave}: leave"
    )]
    KernelPassed,
    #[strum(serialize = "Fix the file and save it. {edit}: open the file · \
        {solution}: show the solution")]
    FixKernelOrSolution,
    #[strum(serialize = "Fix the file and save it. {edit}: open the file · {hint}: read a hint")]
    FixKernel,
    #[strum(serialize = "The measurement runs; the stage's run waits. \
        {stop}: stop the measurement")]
    Measuring,
    #[strum(
        serialize = "What do you expect? {pick-previous}/{pick-next}: select · \
        {pick}: confirm · {edit}: edit"
    )]
    PickAnswer,
    #[strum(serialize = "{pair}: measure and compare with your answers · {edit}: open the file")]
    Measure,
    #[strum(serialize = "{edit}: open your answer · {pair}: measure again")]
    MeasureAgain,

    // Confirmations.
    #[strum(serialize = "No prediction yet: it will count as skipped. Toggle? {yes} {no}")]
    ConfirmToggle,
    #[strum(serialize = "No prediction yet: it will count as skipped. Measure? {yes} {no}")]
    ConfirmPair,
    #[strum(serialize = "No prediction yet: it will count as skipped. Open the knobs? {yes} {no}")]
    ConfirmKnobs,
    #[strum(serialize = "No panel is marked: the fault will count as not found. Go on? {yes} {no}")]
    ConfirmSkipLocating,
    #[strum(serialize = "Show the solution? Your progress will say so. {yes} {no}")]
    ConfirmSolution,
    #[strum(serialize = "Forget this exercise and put its files back? {yes} {no}")]
    ConfirmResetExercise,
    #[strum(serialize = "Forget this stage and put its files back? {yes} {no}")]
    ConfirmResetStage,
    #[strum(serialize = "Leave this stage? Its run ends. {yes} {no}")]
    ConfirmLeave,
    #[strum(serialize = "A question is still open, and the stage is not passed. \
        Go on? {yes} {no}")]
    LeaveQuestionAndStage,
    #[strum(serialize = "A question is still open. Go on without it? {yes} {no}")]
    LeaveQuestion,
    #[strum(serialize = "Leave this stage? Its run ends; your prediction is kept. {yes} {no}")]
    LeaveKeepingPrediction,
    #[strum(serialize = "Leave this stage? Its run ends, and it is not passed. {yes} {no}")]
    LeaveUnpassed,
    #[strum(serialize = "Leave this mystery? It is not solved. {yes} {no}")]
    LeaveMystery,
    #[strum(serialize = "Quit? The next presentation begins at this beat. {yes} {no}")]
    ConfirmQuit,
    #[strum(serialize = "Give up? The faults are shown, and there are no points. {yes} {no}")]
    ConfirmGiveUp,
}

/// Returns the action that a name in braces means. `None` for an unknown name.
fn action(name: &str) -> Option<A> {
    Some(match name {
        "a" => A::Answer(0),
        "choose" => A::Choose,
        "close" => A::Close,
        "devices" => A::Open(Overlay::Devices),
        "down" => A::RangeShift(-1),
        "edit" => A::OpenEditor,
        "focus" => A::FocusNext,
        "glossary" => A::Open(Overlay::Glossary),
        "hint" => A::Hint,
        "in-f32" => A::InF32,
        "keep" => A::RangeKeep,
        "keep-value" => A::KeepSearch,
        "knob-down" => A::KnobRow(1),
        "knob-less" => A::KnobTurn(-1),
        "knob-more" => A::KnobTurn(1),
        "knob-up" => A::KnobRow(-1),
        "knobs" => A::Knobs,
        "leave" => A::LeaveExercise,
        "lesson" => A::Lesson,
        "list" => A::Open(Overlay::Stages),
        "locate" => A::Locate,
        "mark-b" => A::MarkB,
        "narrower" => A::RangeWiden(-1),
        "next" => A::NextStage,
        "no" => A::No,
        "page" => A::TurnPage(1),
        "page-back" => A::TurnPage(-1),
        "pair" => A::Pair,
        "pause" => A::Pause,
        "pick" => A::PickThis,
        "pick-next" => A::PickOther(1),
        "pick-previous" => A::PickOther(-1),
        "pointer" => A::NextPointer,
        "question" => A::Question,
        "restart" => A::Restart,
        "row" => A::Scroll(1),
        "solution" => A::Solution,
        "step" => A::ReplayStep,
        "stop" => A::StopMeasuring,
        "summary" => A::Open(Overlay::Summary),
        "switch" => A::SwitchDevice,
        "take-up" => A::TakeUp,
        "toggle" => A::Toggle,
        "up" => A::RangeShift(1),
        "wider" => A::RangeWiden(1),
        "yes" => A::Yes,
        _ => return None,
    })
}

/// Builds a sentence from a text with the names of keys in braces. `{last}` is the key of the last choice of the open question.
pub(super) fn with_keys(text: &str, app: &App) -> Vec<SentencePart> {
    let choices = app.question().map_or(0, |question| question.choices.len());
    super::pieces(text, |name| match name {
        "last" => Some(A::Answer(choices.saturating_sub(1))),
        _ => action(name),
    })
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    /// The marker before the line.
    const MARKER: &str = " ? ";
    /// The widest name of a key that a sentence may hold.
    const WIDEST_KEY: &str = "right";

    #[test]
    fn every_sentence_names_known_keys_and_fits_the_smallest_screen() {
        for sentence in Sentence::VARIANTS {
            let text = sentence.into_str();
            let mut line = MARKER.to_owned();
            for (index, part) in text.split(['{', '}']).enumerate() {
                let is_key = index % 2 == 1;
                assert!(
                    !is_key || part == "last" || action(part).is_some(),
                    "unknown key {part} in {text}"
                );
                line += if is_key { WIDEST_KEY } else { part };
            }
            assert!(line.chars().count() <= 77, "{line}");
        }
    }
}
