//! What can be typed. Plain data: each command converts its part once into what it needs.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde::{Deserialize, Serialize};

pub(crate) use crate::commands::reproduce::Table;

/// Neural Empirical Bayes: the distribution behind noisy observations, from a simulator.
#[derive(Debug, Parser)]
#[command(name = "neb", version, arg_required_else_help = true)]
#[command(after_help = "\
Data files: .npz (arrays x, y, weight), .npy, .csv, .parquet (columns x1, x2, ..., y1, y2, ..., weight).
Exit codes: 0 done, 1 a computation or check failed, 2 bad input or usage, 130 interrupted.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Seed of everything random; the same seed gives the same bits [default: 1]
    #[arg(long, global = true)]
    pub(crate) seed: Option<u64>,
    /// Threads to use [default: one per core]; results do not depend on it
    #[arg(long, global = true, value_parser = at_least_one)]
    pub(crate) threads: Option<usize>,
    /// No progress and no notes; errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Replace files that exist already
    #[arg(long, global = true)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the method on a built-in problem whose truth is known, and report what was learned
    Demo(Demo),
    /// Both stages: learn the surrogate q(y|x) from pairs, then the source q(x) from observations
    Fit(Fit),
    /// Draw x and simulate y with a built-in problem
    Simulate(Simulate),
    /// Learn the surrogate q(y|x) from simulated pairs
    Surrogate(Surrogate),
    /// Learn the source q(x) from observations, with a surrogate that exists
    Source(Source),
    /// Evaluate log q(y|x) of pairs, or log q(x) of points, row by row
    LogProb(LogProb),
    /// Draw from a fitted model
    Sample(Sample),
    /// Do two samples follow the same law?
    Compare(Compare),
    /// Write a page on a run: a verdict, figures with captions, settings and numbers
    Report(Report),
    /// Draw from the posterior p(x|y) of every observation
    Posterior(Posterior),
    /// Do the posteriors hold the truth as often as they say?
    Calibrate(Calibrate),
    /// Make one file of pairs of the OmniFold files of a generator
    Omnifold(Omnifold),
    /// Correct data for a detector: weights on the simulation, a smooth spectrum, histograms with covariance
    Unfold(Box<Unfold>),
    /// The paper's tables, our values beside the paper's
    Reproduce(Reproduce),
    /// Print the settings a training would use, and where each comes from
    Config(Config),
    /// Print a shell's completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// two-moons, slcp or ik
    #[arg(default_value = "two-moons")]
    pub(crate) problem: String,
    /// Folder to write: data, run and report [default: neb-demo-PROBLEM]
    #[arg(short, long, value_name = "RUN")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Reproduce {
    /// The table [default: all; collider only with --collider]
    #[arg(value_enum)]
    pub(crate) table: Option<Table>,
    /// How often every cell is run, each time with the next seed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) repeats: u64,
    /// Networks and schedules behind the estimators; our own row always has the defaults
    #[arg(long, value_enum, default_value = "paper")]
    pub(crate) preset: Preset,
    /// One problem only: two-moons, slcp or ik
    #[arg(long, value_name = "PROBLEM")]
    pub(crate) only: Option<String>,
    /// These rows only, by the names of their folders: auto, elbo, iw-128, mc-1024, ... Other finished cells are still shown
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// A collider sample: the folder of proposal.npz and nature.npz, with arrays gen and sim
    #[arg(long, value_name = "FOLDER")]
    pub(crate) collider: Option<PathBuf>,
    /// Simulated pairs
    #[arg(long, value_name = "M", default_value_t = 15_000, value_parser = at_least_one)]
    pub(crate) pairs: usize,
    /// Observations
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    pub(crate) observations: usize,
    /// Most epochs of every training, for a quick look [default: those of the preset]
    #[arg(long, value_name = "E", value_parser = at_least_one)]
    pub(crate) epochs: Option<usize>,
    /// Folder to write; cells that are there already are not run again
    #[arg(short, long, value_name = "FOLDER", default_value = "neb-reproduce")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Fit {
    /// Simulated pairs: x and y, row by row
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) pairs: Option<PathBuf>,
    /// Observations: y, row by row
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) observations: Option<PathBuf>,
    /// Folder to write
    #[arg(short, long, value_name = "RUN", required_unless_present = "resume")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stops: Stops,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) config: ConfigSource,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    #[command(flatten)]
    pub(crate) keys: SurrogateKeys,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// A surrogate file, or the folder of a run
    #[arg(required_unless_present = "resume")]
    pub(crate) surrogate: Option<PathBuf>,
    /// The pairs the surrogate was learned from: the source starts from their x
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) pairs: Option<PathBuf>,
    /// Observations: y, row by row
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) observations: Option<PathBuf>,
    /// Folder to write
    #[arg(short, long, value_name = "RUN", required_unless_present = "resume")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stops: Stops,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) config: ConfigSource,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
}

/// What becomes of a run that is stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct Stops {
    /// Go on with a run that was stopped, with the settings and files it was started with
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<PathBuf>,
    /// Seconds between two checkpoints
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) checkpoint_seconds: f64,
}

/// Settings of the source that are flags, and keys of the table `[source]` of a configuration file by the same names; the
/// numbers are keys alone.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Source")]
pub(crate) struct SourceFlags {
    /// Form of q(x) [default: auto]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) source: Option<SourceChoice>,
    /// What is maximised, with a source other than auto [default: mc]
    #[arg(long, value_enum)]
    pub(crate) estimator: Option<EstimatorName>,
    /// Samples K of the estimator
    #[arg(long)]
    pub(crate) k: Option<usize>,
    /// Whether the observations of a batch share their samples (mc) [default: shared]
    #[arg(long, value_enum)]
    pub(crate) samples: Option<SamplesName>,
    /// How the corrections of roulette grow [default: doubling]
    #[arg(long, value_enum)]
    pub(crate) levels: Option<LevelsName>,
    /// The law an affine source maps [default: normal]
    #[arg(long, value_enum)]
    pub(crate) base: Option<BaseName>,
    /// Where x can be: x1=-1:1,x2=0:inf or all=-3:3
    #[arg(long, value_name = "NAME=LOW:HIGH", allow_hyphen_values = true)]
    pub(crate) domain: Option<String>,
    /// Columns of x whose law is even about zero, with commas, or `all`
    #[arg(long, value_name = "all|NAMES")]
    pub(crate) symmetric: Option<String>,
}

/// The form of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SourceChoice {
    /// Several, from the simplest up; the simplest that explains the observations is kept
    Auto,
    /// Scale and shift of a base law, column by column
    Affine,
    /// The same with correlations
    AffineFull,
    /// Flow of affine couplings
    Coupling,
    /// Flow of rational-quadratic splines
    Spline,
    /// Flow of unconstrained monotonic networks, the paper's
    Umnn,
    /// Network of noise, without a density
    Mlp,
    /// Weights on the pairs' own x, and a spline flow fitted to them
    Particles,
}

/// What a single source is fitted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EstimatorName {
    /// Monte Carlo over samples of the source
    Mc,
    /// The same without its bias
    Roulette,
    /// Evidence lower bound, with a recognition network
    Elbo,
    /// Importance-weighted bound, with a recognition network
    Iw,
}

/// Whose the samples of mc are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SamplesName {
    /// One set for all observations of a batch
    Shared,
    /// One set for each, as in the paper
    Independent,
}

/// How the corrections of roulette grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LevelsName {
    /// Sample sizes double: finite variance
    Doubling,
    /// One sample more at a time, as in the paper
    Single,
}

/// A simple law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BaseName {
    Normal,
    Uniform,
}

/// The form of the recognition network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecognitionName {
    Spline,
    Umnn,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// The first sample
    pub(crate) a: PathBuf,
    /// The second sample
    pub(crate) b: PathBuf,
    /// The arrays or columns that are compared [default: x]
    #[arg(long, value_name = "NAMES")]
    pub(crate) x: Option<String>,
    /// Of these, only the columns of these names
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) columns: Option<Vec<String>>,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Report {
    /// The folder of a run
    pub(crate) run: PathBuf,
    /// Rows of the true source, where it is known: x, and y for an example of a posterior
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// Observations [default: the file of the fit]
    #[arg(long, value_name = "FILE")]
    pub(crate) observations: Option<PathBuf>,
    /// Simulated pairs [default: the file of the fit]
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// File to write; figures go into the folder `figures` beside it [default: report.html in the run]
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: Columns,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Posterior {
    /// The folder of a run
    pub(crate) run: PathBuf,
    /// Observations: y, row by row
    #[arg(long, value_name = "FILE")]
    pub(crate) observations: PathBuf,
    /// The arrays or columns that are y, with commas
    #[arg(long, value_name = "NAMES")]
    pub(crate) y: Option<String>,
    /// Draws for each observation
    #[arg(short, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub(crate) n: usize,
    #[command(flatten)]
    pub(crate) sampler: Sampler,
    /// Also find the x of greatest posterior density of each observation
    #[arg(long)]
    pub(crate) map: bool,
    /// File to write: x (observations x draws x dimensions), weight, and what is known about each observation
    #[arg(short, long, value_name = "FILE.npz")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Calibrate {
    /// The folder of a run
    pub(crate) run: PathBuf,
    /// Pairs whose x is drawn from the true source: x and y, row by row
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: PathBuf,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Posterior draws for each pair
    #[arg(short, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    pub(crate) n: usize,
    #[command(flatten)]
    pub(crate) sampler: Sampler,
    /// Pass if no dimension's KS distance is above this, rather than if chance could explain every curve
    #[arg(long, value_name = "KS")]
    pub(crate) max_ks: Option<f64>,
    /// File to write [default: calibration.json in the folder of the run]
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
}

/// How posteriors are drawn from, and when to stop.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampler")]
pub(crate) struct Sampler {
    /// How to draw
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) method: PosteriorMethod,
    /// Stop after so many seconds with what was found
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = positive)]
    pub(crate) max_seconds: f64,
    /// Stop after so many samples of the source with what was found
    #[arg(long, value_name = "K", default_value_t = 10_000_000)]
    pub(crate) max_samples: u64,
}

/// How posteriors are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PosteriorMethod {
    /// Rejection if --max-samples is likely to be enough for it, else annealed
    Auto,
    /// Samples of the source, accepted with probability q(y|x)/max: exact, slow where the likelihood is narrow
    Rejection,
    /// Samples of the source (of the recognition network, where the run has one), resampled by their weights
    Importance,
    /// A population that follows the likelihood from wide to narrow: where rejection and importance find nothing
    Annealed,
    /// Hamiltonian chains: for one smooth mode; may miss others
    Nuts,
    /// The recognition network's own draws, where the run has one
    Direct,
}

impl PosteriorMethod {
    /// The library's method; none for the one it suggests.
    pub(crate) fn named(self) -> Option<neb::posterior::Method> {
        use neb::posterior::Method;
        match self {
            Self::Auto => None,
            Self::Rejection => Some(Method::Rejection),
            Self::Importance => Some(Method::Importance),
            Self::Annealed => Some(Method::Annealed),
            Self::Nuts => Some(Method::Nuts),
            Self::Direct => Some(Method::Direct),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// two-moons, slcp or ik
    pub(crate) problem: String,
    /// Rows to draw; with --from FILE the first rows of the file [default there: all]
    #[arg(short, value_name = "N", value_parser = at_least_one)]
    pub(crate) n: Option<usize>,
    /// Where x comes from: `prior` (the true source), `proposal` (covers the source with a margin), `standard-normal`, or a
    /// file
    #[arg(long, value_name = "LAW|FILE", default_value = "prior")]
    pub(crate) from: String,
    /// The arrays or columns of the file that are x
    #[arg(long, value_name = "NAMES")]
    pub(crate) x: Option<String>,
    /// File to write, with x and y
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Surrogate {
    /// Simulated pairs: x and y, row by row
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE.safetensors")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) config: ConfigSource,
    #[command(flatten)]
    pub(crate) keys: SurrogateKeys,
    /// Seconds between two checkpoints
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) checkpoint_seconds: f64,
    /// Go on from the checkpoints of a run that was stopped
    #[arg(long)]
    pub(crate) resume: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("rows").required(true).args(["pairs", "points"]))]
pub(crate) struct LogProb {
    /// A surrogate file (with --pairs), a source file (with --points), or the folder of a run
    pub(crate) model: PathBuf,
    /// Pairs to evaluate log q(y|x) at, with the surrogate
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// Rows of x to evaluate log q(x) at, with the source; it is -inf outside its support
    #[arg(long, value_name = "FILE")]
    pub(crate) points: Option<PathBuf>,
    /// File to write, with the array log_prob [default: print only mean and median]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// The array or column that is the weight of a row, for mean and median
    #[arg(long, value_name = "NAME")]
    pub(crate) weight: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    /// A surrogate file, or the folder of a run
    pub(crate) model: PathBuf,
    /// Rows of x to draw from the source
    #[arg(short, value_name = "N", value_parser = at_least_one, required_unless_present_any = ["points", "weights"])]
    pub(crate) n: Option<usize>,
    /// Draw y too, through the surrogate, one for each row of x
    #[arg(long)]
    pub(crate) push: bool,
    /// With --push: take x from this file rather than from the source
    #[arg(long, value_name = "FILE", requires = "push", conflicts_with = "n")]
    pub(crate) points: Option<PathBuf>,
    /// Write the particles (x of the pairs) with their weights instead
    #[arg(long, conflicts_with_all = ["n", "push", "points"])]
    pub(crate) weights: bool,
    /// The arrays or columns of the file that are x
    #[arg(long, value_name = "NAMES")]
    pub(crate) x: Option<String>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Omnifold {
    /// A folder with the files of one generator, FOLDER/GENERATOR where it holds several, or single files
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Keep jets without a width (tau21 is 0) or without a groomed mass (lnrho is at its floor), which are left out otherwise
    #[arg(long)]
    pub(crate) fill: bool,
    /// With --fill: the least lnrho
    #[arg(long, value_name = "LNRHO", default_value_t = -14.0, requires = "fill", allow_negative_numbers = true)]
    pub(crate) floor: f32,
    /// File to write, with x (gen) and y (sim)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, serde::Serialize, clap::Args)]
pub(crate) struct Unfold {
    /// Simulated events: x as produced and y as reconstructed, row by row; perhaps `weight` and a mask `reconstructed`
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: PathBuf,
    /// The data: y, row by row; perhaps `weight`
    #[arg(long, value_name = "FILE")]
    pub(crate) observations: PathBuf,
    /// Folder to write
    #[arg(short, long, value_name = "RUN")]
    #[serde(skip)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) columns: Columns,
    /// The arrays or columns of the data that are y [default: as in the pairs]
    #[arg(long, value_name = "NAMES")]
    pub(crate) observed_y: Option<String>,
    /// The array or column of the pairs that is the weight of an event; it may be negative
    #[arg(long, value_name = "NAME")]
    pub(crate) weight: Option<String>,
    /// The array or column of the pairs that is 1 where an event was reconstructed, else 0: then its y is not looked at
    #[arg(long, value_name = "NAME")]
    pub(crate) reconstructed: Option<String>,
    /// Simulated events that were not reconstructed: x, perhaps `weight`
    #[arg(long, value_name = "FILE")]
    pub(crate) missed: Option<PathBuf>,
    /// Simulated events that were reconstructed but never produced: y, perhaps `weight`
    #[arg(long, value_name = "FILE")]
    pub(crate) fakes: Option<PathBuf>,
    /// Background: y, perhaps `weight`, which adds up to the events expected in the data
    #[arg(long, value_name = "FILE")]
    pub(crate) background: Option<PathBuf>,
    /// What the data really were, where that is known: x. For scoring after the fit; no part of the fit sees it
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) truth: Option<PathBuf>,
    /// The arrays or columns of the truth that are x [default: as in the pairs]
    #[arg(long, value_name = "NAMES", requires = "truth")]
    #[serde(skip)]
    pub(crate) truth_x: Option<String>,
    /// Bins of a column of x, as NAME=COUNT:LOW:HIGH or NAME=EDGE/EDGE/... [default: 20 between the 0.5 % and 99.5 % points of
    /// the simulation]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME=N:LOW:HIGH",
        allow_hyphen_values = true
    )]
    pub(crate) bins: Vec<String>,
    /// A spectrum in two columns of x at once: two names, or two of what --bins takes, with a comma; may be repeated [default
    /// bins: 8 of each column]
    #[arg(long, value_name = "A=N:LOW:HIGH,B=...", allow_hyphen_values = true)]
    pub(crate) joint: Vec<String>,
    /// Iterations of the weights [default: as many as explain held-out data best]
    #[arg(long, value_parser = at_least_one)]
    pub(crate) iterations: Option<usize>,
    /// Replicas of the data behind the covariance; 0 for none
    #[arg(long, default_value_t = 20)]
    pub(crate) replicas: u64,
    /// Replicas of the simulation, each with a training that starts from the nominal one
    #[arg(long, default_value_t = 0)]
    pub(crate) simulation_replicas: u64,
    /// Repetitions of the training with other seeds
    #[arg(long, default_value_t = 0)]
    pub(crate) training_replicas: u64,
    /// Draws of the smooth source to write
    #[arg(long, default_value_t = 400_000, value_parser = at_least_one)]
    pub(crate) draws: usize,
    /// Components of the surrogate
    #[arg(long, default_value_t = 16, value_parser = at_least_one)]
    pub(crate) components: usize,
    /// Passes of the surrogate over the pairs
    #[arg(long, default_value_t = 80, value_parser = at_least_one)]
    pub(crate) epochs: usize,
    /// Passes of the smooth source over the weighted simulation
    #[arg(long, default_value_t = 25, value_parser = at_least_one)]
    pub(crate) smooth_epochs: usize,
    /// Megabytes for the table of likelihoods; it is computed anew in each iteration where it does not fit
    #[arg(long, default_value_t = 1500, value_parser = at_least_one)]
    pub(crate) memory: usize,
    /// Columns that models are to see otherwise: none, log, logit, dequantise, atom [default: whole numbers and atoms are found]
    #[arg(long, value_name = "NAME=KIND,...", allow_hyphen_values = true)]
    pub(crate) transform: Option<String>,
    /// Go on with a run that was stopped: the same command with this flag; finished replicas are not run again
    #[arg(long)]
    #[serde(skip)]
    pub(crate) resume: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Config {
    /// The command whose settings are printed
    #[arg(value_enum, default_value = "fit")]
    pub(crate) command: Stages,
    #[command(flatten)]
    pub(crate) config: ConfigSource,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    #[command(flatten)]
    pub(crate) keys: SurrogateKeys,
}

/// Which arrays or columns of a file play which part.
#[derive(Debug, Default, serde::Serialize, clap::Args)]
pub(crate) struct Columns {
    /// The arrays or columns that are x, with commas
    #[arg(long, value_name = "NAMES")]
    pub(crate) x: Option<String>,
    /// The arrays or columns that are y, with commas
    #[arg(long, value_name = "NAMES")]
    pub(crate) y: Option<String>,
}

/// Where settings come from that are not typed one by one.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ConfigSource {
    /// Settings as TOML: the keys of `neb config`
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Settings to start from [default: fast]
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// Columns that models are to see otherwise: none, log, logit, dequantise, atom [default: whole numbers and atoms are found]
    #[arg(long, value_name = "NAME=KIND,...", allow_hyphen_values = true)]
    pub(crate) transform: Option<String>,
}

/// The stages a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stages {
    /// Both stages
    Fit,
    /// Stage 1 alone
    Surrogate,
    /// Stage 2 alone
    Source,
}

/// A complete set of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    /// What works best in little time
    Fast,
    /// The networks and schedules of the paper
    Paper,
}

/// The form of the surrogate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Train mixtures and flows, keep the best on held-out pairs
    Auto,
    /// Affine coupling flow on a Gaussian head
    Coupling,
    /// Rational-quadratic spline flow on a Gaussian head
    Spline,
    /// Gaussian mixture with full covariances
    Mixture,
    /// Mixtures of 1 and 8 components that know the density of y with noise added, which stage 2 needs; the better is kept
    NoisyMixture,
    /// The paper's coupling flow, trained as there
    Paper,
}

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScheduleName {
    /// The same throughout
    Constant,
    /// A short rise, then half a cosine down to zero
    Cosine,
}

/// The function between two layers of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActivationName {
    Relu,
    LeakyRelu,
    Silu,
    Tanh,
}

/// Settings of the surrogate, as flags and as keys of the table `[surrogate]` of a configuration file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[command(next_help_heading = "Surrogate")]
pub(crate) struct SurrogateKeys {
    /// Form of q(y|x)
    #[arg(long, value_enum)]
    pub(crate) kind: Option<Kind>,
    /// Passes over the training pairs
    #[arg(long)]
    pub(crate) epochs: Option<usize>,
    /// Pairs in a minibatch
    #[arg(long)]
    pub(crate) batch: Option<usize>,
    /// Learning rate
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// How the learning rate changes
    #[arg(long, value_enum)]
    pub(crate) schedule: Option<ScheduleName>,
    /// Weight decay
    #[arg(long)]
    pub(crate) weight_decay: Option<f64>,
    /// Largest norm of the gradient; 0 for no limit
    #[arg(long)]
    pub(crate) clip_norm: Option<f64>,
    /// Share of the pairs held out to judge by
    #[arg(long, value_name = "SHARE")]
    pub(crate) held_out: Option<f64>,
    /// Stop after so many epochs without improvement; 0 for never
    #[arg(long, value_name = "EPOCHS")]
    pub(crate) patience: Option<usize>,
    /// Layers of a flow
    #[arg(long)]
    pub(crate) layers: Option<usize>,
    /// Hidden units of the networks, for example 64,64
    #[arg(long, value_delimiter = ',', value_name = "UNITS")]
    pub(crate) hidden: Option<Vec<usize>>,
    /// Hidden units of the Gaussian head under a flow
    #[arg(long, value_delimiter = ',', value_name = "UNITS")]
    pub(crate) head: Option<Vec<usize>>,
    /// Function between the layers of a flow's networks
    #[arg(long, value_enum)]
    pub(crate) activation: Option<ActivationName>,
    /// Bins of each spline
    #[arg(long)]
    pub(crate) bins: Option<usize>,
    /// Splines act within so many deviations
    #[arg(long)]
    pub(crate) bound: Option<f64>,
    /// Components of a mixture
    #[arg(long)]
    pub(crate) components: Option<usize>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 => Ok(number),
        _ => Err("expected a number above 0".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected 1 or more".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number, 1 or more".to_owned()),
    }
}
