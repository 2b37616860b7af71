//! Two kernels behind a line that they share with a simulated call: they transfer over it, the call waits behind what they
//! send, and two runs are equal. Needs a kernel (`trunkline kernel build`); without one, nothing is tested.
//!
//! This program is also the first process of the kernels, which is why it has no harness.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};

    use trunkline_core::{Duration, FlowId, Seed, Time};
    use trunkline_experiment::{Experiment, Progress, Supervisor};
    use trunkline_kernel::{KernelMeans, Kernels, init};
    use trunkline_metrics::{Console, FlowMeta, Meter, Observation, Recorder};
    use trunkline_testkit::skips::Missing;

    /// The transfer: as much as the line takes in three seconds.
    const SINK: &str = "import socket\nc,_=socket.create_server((\"\",5001)).accept()\nn=0\n\
                        while d:=c.recv(65536): n+=len(d)\nprint(\"received\",n)\n";
    const SOURCE: &str = "import socket,time\ns=socket.create_connection((\"sink\",5001))\ne=time.time()+3\n\
                          while time.time()<e: s.send(bytes(65536))\n";

    pub(super) fn main() {
        if init::is_wanted() {
            init::run().unwrap_or_else(|error| panic!("{error}"));
            return;
        }
        let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = from("XDG_DATA_HOME").or_else(|| Some(from("HOME")?.join(".local/share")));
        let built = data.unwrap_or_default().join("trunkline/kernels/linux-6.1");
        let kernel = std::env::var_os("TRUNKLINE_KERNEL").map_or(built, PathBuf::from);
        if !kernel.is_file() {
            let why = format!("{} is not there; `trunkline kernel build` builds it", kernel.display());
            return trunkline_testkit::skips::skip_without(Missing::UserModeLinux, &why);
        }
        // Below `/tmp`, where a guest has files of its own beside those of the experiment's folder.
        let folder = tempfile::tempdir_in("/tmp").unwrap_or_else(|error| panic!("{error}"));
        for (name, text) in [("sink.py", SINK), ("source.py", SOURCE)] {
            std::fs::write(folder.path().join(name), text).unwrap_or_else(|error| panic!("{error}"));
        }
        let first = run(&kernel, folder.path());
        let second = run(&kernel, folder.path());
        // Killed processes need a processor to end.
        let killed = std::time::Instant::now();
        while !left_processes(&kernel).is_empty() {
            assert!(killed.elapsed().as_secs() < 5, "processes are left: {:?}", left_processes(&kernel));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert!(first == second, "two runs differ:\n{:?}\n{:?}", first.consoles, second.consoles);
        let sink = &first.consoles[1].text;
        let received: u64 =
            sink.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{sink}"));
        let goodput = received as f64 * 8.0 / 3.0 / 1e6;
        assert!((8.0..10.5).contains(&goodput), "{goodput} Mbit/s over a line of 10 Mbit/s");
        let p99 = first.p99.as_secs_f64() * 1000.0;
        assert!((30.0..70.0).contains(&p99), "a call behind a queue of 50 ms has a p99 of {p99} ms");
        anstream::println!("{goodput:.2} Mbit/s, p99 of the call {p99:.1} ms");
    }

    /// Processes of this test's kernels: their command lines name this program.
    fn left_processes(kernel: &Path) -> Vec<String> {
        let own = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
        let processes = std::fs::read_dir("/proc").unwrap_or_else(|error| panic!("{error}"));
        let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
        let lines = processes.flatten().filter_map(line);
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        let (kernel, own) = (kernel.display().to_string(), own.display().to_string());
        lines.filter(|line| line.starts_with(&kernel) && line.contains(&own)).collect()
    }

    #[derive(PartialEq)]
    struct Run {
        consoles: Vec<Console>,
        p99: Duration,
        observed: Vec<(Time, FlowId, Observation)>,
    }

    fn run(kernel: &Path, folder: &Path) -> Run {
        let text = format!(
            "name = \"kernels\"\nduration = \"5 s\"\nseed = 7\n[hosts]\nleft = {{}}\nright = {{}}\nhome = {{}}\nserver = {{}}\n\
             [hosts.source]\nkernel = \"{0}\"\nrun = \"/usr/bin/python3 -S -B source.py\"\n\
             [hosts.sink]\nkernel = \"{0}\"\nrun = \"/usr/bin/python3 -S -B sink.py\"\n\
             [link.line]\nbetween = [\"left\", \"right\"]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = {{ kind = \"fifo\", limit = \"62500 B\" }}\n\
             [link.a]\nbetween = [\"source\", \"left\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [link.b]\nbetween = [\"sink\", \"right\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [link.c]\nbetween = [\"home\", \"left\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [link.d]\nbetween = [\"server\", \"right\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [flow.call]\nfrom = \"home\"\nto = \"server\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\", samples = 80 }}\n",
            kernel.display()
        );
        let experiment =
            Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let scenario = &experiment.points.first().scenario;
        let init = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
        let means = KernelMeans { init, folder: None };
        let mut kernels = Kernels::start(scenario, Seed::new(7, 0), folder, &means)
            .unwrap_or_else(|error| panic!("{error}"))
            .unwrap_or_else(|| panic!("the file has kernels"));
        let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
        let mut no_trace = ();
        let mut recorder = (Meter::new(&metas, &mut no_trace), Log::default());
        let outcome = trunkline_simulator::run_with(
            scenario,
            Seed::new(7, 0),
            Some(&mut kernels),
            &mut recorder,
            &mut GoOn,
        );
        let (outcome, failed) = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(failed, None);
        let (meter, log) = recorder;
        let summary = meter.finish(outcome);
        let latency = summary.flows[0].latency.as_ref().unwrap_or_else(|| panic!("the call has a latency"));
        Run { consoles: kernels.consoles(), p99: latency.p99, observed: log.0 }
    }

    #[derive(Default)]
    struct Log(Vec<(Time, FlowId, Observation)>);

    impl Recorder for Log {
        fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
            self.0.push((at, flow, what));
        }
    }

    struct GoOn;

    impl Supervisor for GoOn {
        fn progress(&mut self, _: Duration) -> Progress {
            Progress::Continue
        }
    }
}
