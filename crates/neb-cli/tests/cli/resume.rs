//! A training that is stopped, by force or by Ctrl-C, and resumed ends in the bytes of one that was not.

use std::process::{Child, Command, Stdio};

use crate::folder::Folder;

/// Three small candidates.
const TRAIN: &str = "surrogate --pairs pairs.npz --hidden 8 --head 8 --layers 2 --epochs 150 --batch 64 \
                     --components 2 -o stopped.safetensors";

/// Saves after every step: the run is stopped at a checkpoint, wherever it is stopped.
const EVERY_STEP: &str = "--checkpoint-seconds 0";

fn start(folder: &Folder) -> Child {
    folder
        .command(&format!("{TRAIN} {EVERY_STEP}"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the second candidate has begun.
fn wait_for_checkpoint(folder: &Folder) {
    folder.wait_for("stopped.checkpoint.1.safetensors");
}

fn assert_resumes_to_the_same_bytes(folder: &Folder) {
    assert!(
        !folder.path("stopped.safetensors").exists(),
        "it was not stopped"
    );
    folder.refused(
        TRAIN,
        &[
            "stopped.checkpoint.0.safetensors: an earlier run was not finished",
            "--resume",
        ],
    );
    folder.refused(
        &format!("{TRAIN} --resume --seed 2"),
        &["belongs to another run", "its seed is 1, this run's 2"],
    );
    folder.succeed(&format!("{TRAIN} --resume"));
    folder.succeed(&TRAIN.replace("stopped", "whole"));
    assert!(folder.bytes("stopped.safetensors") == folder.bytes("whole.safetensors"));
    for (path, _) in folder.contents() {
        let name = path.to_string_lossy();
        assert!(!name.contains("checkpoint"), "{name} was left behind");
    }
}

#[test]
fn a_killed_training_resumes_to_the_same_bytes() {
    let folder = Folder::new();
    folder.succeed("simulate two-moons -n 600 --from proposal -o pairs.npz");
    let mut child = start(&folder);
    wait_for_checkpoint(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_resumes_to_the_same_bytes(&folder);
}

#[test]
fn ctrl_c_leaves_a_checkpoint_and_says_how_to_resume() {
    let folder = Folder::new();
    folder.succeed("simulate two-moons -n 600 --from proposal -o pairs.npz");
    let child = start(&folder);
    wait_for_checkpoint(&folder);
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{words}");
    let command = format!("neb {TRAIN} {EVERY_STEP} --resume");
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&command), "{words}");
    assert_resumes_to_the_same_bytes(&folder);
}

#[test]
fn force_starts_anew() {
    let folder = Folder::new();
    folder.succeed("simulate two-moons -n 600 --from proposal -o pairs.npz");
    let mut child = start(&folder);
    wait_for_checkpoint(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    let small =
        "surrogate --pairs pairs.npz -o stopped.safetensors --kind mixture --hidden 8 --epochs 1";
    folder.succeed(&format!("{small} --force"));
    assert!(!folder.path("stopped.checkpoint.1.safetensors").exists());
    let ended = folder.neb(&format!("{small} --force --resume"));
    assert!(
        ended.stderr.contains("no checkpoint to resume"),
        "{ended:?}"
    );
}

const FIT: &str = "fit --pairs pairs.npz --observations seen.npz --config small.toml";

fn start_fit(folder: &Folder, more: &str) -> Child {
    let line = format!("{FIT} {more} {EVERY_STEP} -o run");
    folder
        .command(&line)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn assert_same_run(folder: &Folder, more: &str, files: &[&str]) {
    folder.succeed(&format!("{FIT} {more} -o whole"));
    for file in files {
        let (resumed, whole) = (format!("run/{file}"), format!("whole/{file}"));
        assert!(folder.bytes(&resumed) == folder.bytes(&whole), "{file}");
    }
    for (path, _) in folder.contents() {
        let name = path.to_string_lossy().into_owned();
        let left = ["partial", "checkpoint", "started.json"];
        assert!(
            !left.iter().any(|word| name.contains(word)),
            "{name} was left behind"
        );
    }
}

/// Killed in stage 1, again in stage 2, and once more: each time it goes on from its checkpoints.
#[test]
fn a_killed_fit_resumes_to_the_same_bytes() {
    let folder = Folder::with_observations();
    let mut child = start_fit(&folder, "");
    for checkpoint in ["surrogate.0", "source.1", "source.6"] {
        folder.wait_for(&format!("run.partial/checkpoints/{checkpoint}.safetensors"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!folder.path("run").exists(), "it was not stopped");
        folder.refused(
            &format!("{FIT} -o run"),
            &[
                "run.partial: an earlier run was not finished",
                "neb fit --resume run",
            ],
        );
        let line = "fit --resume run";
        child = folder.command(line).stderr(Stdio::piped()).spawn().unwrap();
    }
    assert!(child.wait().unwrap().success());
    let files = [
        "surrogate.safetensors",
        "source.safetensors",
        "particles.npz",
        "config.toml",
    ];
    assert_same_run(&folder, "", &files);
    folder.refused("fit --resume run", &["no unfinished run to resume"]);
}

/// The variational bounds have two models to bring back.
#[cfg(unix)]
#[test]
fn ctrl_c_in_a_single_fit_says_how_to_resume() {
    let folder = Folder::with_observations();
    let settings = "[source]\nk = 16\nepochs = 40\nbatch = 64\nlayers = 2\nhidden = [8]\n";
    let config = format!("{}\n{settings}", stage1_of(crate::folder::SMALL_TOML));
    std::fs::write(folder.path("small.toml"), config).unwrap();
    let more = "--source spline --estimator elbo";
    let child = start_fit(&folder, more);
    folder.wait_for("run.partial/checkpoints/source.1.0.safetensors");
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{words}");
    assert!(words.contains("kept in run.partial"), "{words}");
    assert!(
        words.contains("continue with: neb fit --resume run"),
        "{words}"
    );
    folder.succeed("fit --resume run");
    let files = [
        "surrogate.safetensors",
        "source.safetensors",
        "recognition.safetensors",
    ];
    assert_same_run(&folder, more, &files);
}

/// The settings of stage 1 in a configuration file.
fn stage1_of(text: &str) -> &str {
    text.split("[source]").next().unwrap()
}
