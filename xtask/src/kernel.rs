//! User-Mode Linux with time travel, of Debian's source: a host of the simulator, and the kernel of the bench `matrix`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::test::step;

/// Debian's source.
const SOURCE: &str = "/usr/src/linux-source-6.1.tar.xz";

const PACKAGES: &str = "linux-source-6.1 build-essential flex bison bc libelf-dev libssl-dev xz-utils";

/// The source that draws random numbers of this machine, and its replacement, which draws those of a seed if there is one.
const RANDOM: &str = "arch/um/os-Linux/util.c";
const OF_THE_MACHINE: &str = "\treturn getrandom(buf, len, flags);\n";
const OF_A_SEED: &str = include_str!("../../benches/peers/uml-random.c");

/// Options of the kernel, beside the defaults of its architecture.
const OPTIONS: &str = include_str!("../../benches/peers/uml.config");

pub(crate) fn run() -> Result<(), String> {
    if !PathBuf::from(SOURCE).exists() {
        return Err(format!("{SOURCE} is missing: install the Debian packages {PACKAGES}"));
    }
    let folder = crate::root().join("target/kernel");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    step(
        "kernel: source",
        Command::new("tar").arg("--directory").arg(&folder).args(["--strip-components=1", "-xf", SOURCE]),
    )?;
    let random = folder.join(RANDOM);
    let source = fs::read_to_string(&random).map_err(|e| format!("{}: {e}", random.display()))?;
    if !source.contains(OF_THE_MACHINE) {
        return Err(format!("{} does not call getrandom as that of Linux 6.1 does", random.display()));
    }
    let source = source.replacen(OF_THE_MACHINE, OF_A_SEED, 1);
    fs::write(&random, source).map_err(|e| format!("{}: {e}", random.display()))?;
    let make = |arguments: &[&str]| {
        let mut command = Command::new("make");
        command.arg("--directory").arg(&folder).arg("ARCH=um").args(arguments);
        step(&format!("kernel: {}", arguments.join(" ")), &mut command)
    };
    make(&["--silent", "defconfig"])?;
    let config = folder.join(".config");
    let mut options = fs::read_to_string(&config).map_err(|e| format!("{}: {e}", config.display()))?;
    // Of an option that stands there twice, the last counts.
    options.push_str(OPTIONS);
    fs::write(&config, options).map_err(|e| format!("{}: {e}", config.display()))?;
    make(&["--silent", "olddefconfig"])?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    make(&["--silent", &format!("--jobs={jobs}"), "linux"])?;
    anstream::println!("\nthe kernel is {}", folder.join("linux").display());
    Ok(())
}
