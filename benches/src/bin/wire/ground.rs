//! Two hosts in namespaces of their own, and what stands between them.

use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use trunkline_benches::experiment;
use trunkline_core::{Duration, Seed};
use trunkline_io::bare::relay::{self as bare, RingEnd, Waiting};
use trunkline_io::tun::Tun;
use trunkline_io::{MonotonicClock, interface, process};
use trunkline_wire::device::{Device, Layer, open_ring, open_tun};
use trunkline_wire::relay::{CoreConfig, RelayHandle, RelayOptions, Stations, start};

/// What traffic is made on, and where relays run.
pub(crate) const CORES: [usize; 2] = [0, 1];
const INTERFACE: &str = "wire0";
/// The addresses of the two.
pub(crate) const ADDRESSES: [[u8; 4]; 2] = [[198, 18, 0, 1], [198, 18, 0, 2]];
const MTU: usize = 1500;

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tun,
    Ring,
}

/// What passes packets on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Between<'t> {
    /// A bare loop.
    Bare,
    /// Our relay, with the keys of a link.
    Ours(&'t str),
}

/// A thread in a network namespace of its own.
pub(crate) struct Namespace {
    jobs: Sender<Box<dyn FnOnce() + Send>>,
    path: String,
}

impl Namespace {
    fn new() -> Namespace {
        let (jobs, todo) = channel::<Box<dyn FnOnce() + Send>>();
        let (answer, path) = channel();
        std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("root may make namespaces");
            let own = std::fs::read_link("/proc/thread-self").expect("a thread has an entry");
            answer.send(format!("/proc/{}/ns/net", own.display())).expect("somebody waits for it");
            todo.iter().for_each(|job| job());
        });
        Namespace { path: path.recv().expect("the thread has told it"), jobs }
    }

    /// Runs `job` inside.
    pub(crate) fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (answer, result) = channel();
        let job = move || answer.send(job()).expect("somebody waits for it");
        self.jobs.send(Box::new(job)).expect("the thread waits for jobs");
        result.recv().expect("the job has not failed")
    }

    fn ip(&self, arguments: String) {
        let status = self.run(move || Command::new("ip").args(arguments.split(' ')).status());
        assert!(status.expect("iproute2 is there").success());
    }

    /// Runs `job` inside in the background.
    fn spawn<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
        self.run(|| std::thread::spawn(job))
    }
}

/// Two hosts, joined.
pub(crate) struct Ground {
    pub(crate) kind: Kind,
    pub(crate) hosts: [Namespace; 2],
    _hub: Namespace,
    relay: Running,
}

enum Running {
    Bare(Arc<AtomicBool>, Option<JoinHandle<()>>),
    Ours(RelayHandle),
}

impl Drop for Ground {
    fn drop(&mut self) {
        match &mut self.relay {
            Running::Bare(over, thread) => {
                over.store(true, Ordering::Relaxed);
                thread.take().map(JoinHandle::join);
            }
            Running::Ours(relay) => {
                relay.stop().expect("the devices are there");
            }
        }
    }
}

impl Ground {
    /// Joins two new hosts.
    pub(crate) fn new(kind: Kind, between: Between<'_>, waiting: Waiting) -> Ground {
        let hosts = [Namespace::new(), Namespace::new()];
        let hub = Namespace::new();
        let relay = match (kind, between) {
            (Kind::Tun, Between::Ours(keys)) => {
                let devices = hosts.iter().map(|host| host.run(|| open_tun(INTERFACE, MTU)));
                let devices = devices.map(|device| device.expect("there is TUN")).collect();
                ours(Layer::Ip, devices, keys, waiting)
            }
            (Kind::Tun, Between::Bare) => {
                let tuns = [0, 1]
                    .map(|host: usize| hosts[host].run(|| Tun::create(INTERFACE)).expect("there is TUN"));
                in_background(move |over| bare::tun([tuns[0].as_fd(), tuns[1].as_fd()], waiting, over))
            }
            (Kind::Ring, between) => {
                for (place, host) in hosts.iter().enumerate() {
                    hub.ip(format!(
                        "link add hub{place} type veth peer name {INTERFACE} netns {}",
                        host.path
                    ));
                    hub.ip(format!("link set hub{place} addrgenmode none up"));
                    hub.run(move || interface::limit_offloads(&format!("hub{place}"), &[]))
                        .expect("it is there");
                    host.run(|| interface::limit_offloads(INTERFACE, &[])).expect("it is there");
                    host.ip(format!("link set {INTERFACE} address 02:00:00:00:00:0{place}"));
                }
                match between {
                    Between::Ours(keys) => {
                        let open = |place: usize| hub.run(move || open_ring(&format!("hub{place}")));
                        let devices = [0, 1].map(|place| open(place).expect("it is there"));
                        ours(Layer::Ethernet, devices.into(), keys, waiting)
                    }
                    Between::Bare => {
                        let open = |place: usize| {
                            hub.run(move || {
                                RingEnd::open(interface::index(&format!("hub{place}")).expect("it is there"))
                            })
                        };
                        let mut ends = [0, 1].map(open);
                        in_background(move |over| bare::ring(&mut ends, waiting, over))
                    }
                }
            }
        };
        for (host, [a, b, c, d]) in hosts.iter().zip(ADDRESSES) {
            host.ip(format!("link set {INTERFACE} addrgenmode none up"));
            host.ip(format!("addr add {a}.{b}.{c}.{d}/24 dev {INTERFACE}"));
        }
        Ground { kind, hosts, _hub: hub, relay }
    }

    /// A packet of so many bytes to nobody at the second host, as it is on the first one's interface.
    pub(crate) fn frame(&self, size: usize) -> Vec<u8> {
        let mut frame = match self.kind {
            Kind::Tun => Vec::new(),
            // To a hardware address that nobody has.
            Kind::Ring => [[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 0]].concat(),
        };
        if self.kind == Kind::Ring {
            frame.extend([8, 0]);
        }
        let mut packet = vec![0; size];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        (packet[8], packet[9]) = (64, 17);
        packet[12..16].copy_from_slice(&ADDRESSES[0]);
        packet[16..20].copy_from_slice(&[198, 18, 0, 99]);
        frame.extend(packet);
        frame
    }

    /// Sends this frame from the first host as fast as it goes, until told.
    pub(crate) fn inject(&self, frame: Vec<u8>, over: Arc<AtomicBool>) -> JoinHandle<()> {
        self.hosts[0].spawn(move || {
            pin(0);
            bare::inject(interface::index(INTERFACE).expect("it is there"), &frame, &over);
        })
    }

    /// Packets that the second host has received.
    pub(crate) fn received(&self) -> u64 {
        let table = self.hosts[1].run(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.expect("there is procfs");
        let line = table.lines().find_map(|line| line.trim().strip_prefix("wire0:")).expect("it is there");
        line.split_whitespace().nth(1).and_then(|packets| packets.parse().ok()).unwrap_or(0)
    }

    /// Nanoseconds that the relay's thread has run.
    pub(crate) fn worked(&self) -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").expect("there is procfs");
        let read = |task: &std::fs::DirEntry, file: &str| {
            std::fs::read_to_string(task.path().join(file)).unwrap_or_default()
        };
        let relay = tasks.flatten().find(|task| read(task, "comm").starts_with("link-"));
        let worked = relay.map(|task| read(&task, "schedstat")).unwrap_or_default();
        worked.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    }
}

/// Keeps the calling thread to the core of traffic (0) or of relays (1).
pub(crate) fn pin(which: usize) {
    // Where there are fewer cores the figures say so.
    let _ = process::pin_to_core(CORES[which]);
}

fn in_background(relay: impl FnOnce(&AtomicBool) + Send + 'static) -> Running {
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let thread = std::thread::Builder::new().name("link-bare".to_owned()).spawn(move || {
        pin(1);
        trunkline_io::pace::reduce_timer_slack();
        relay(&told);
    });
    Running::Bare(over, Some(thread.expect("there are threads")))
}

fn ours(layer: Layer, devices: Vec<Box<dyn Device>>, keys: &str, waiting: Waiting) -> Running {
    let text = format!(
        "name = \"wire\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\n\
         between = [\"a\", \"b\"]\n{keys}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
         source = {{ kind = \"voice\" }}\n"
    );
    let experiment = experiment(&text);
    let mut links = experiment.points.first().scenario.build_links(Seed::new(7, 0));
    let config =
        CoreConfig { medium: links.remove(0), layer, stations: Stations::Two, mtus: vec![MTU as u32; 2] };
    let options = RelayOptions {
        clock: MonotonicClock::starting_now(),
        spin: Duration::from_nanos(waiting.spin),
        core: Some(CORES[1]),
    };
    Running::Ours(start("l", config, devices, options).expect("there are threads"))
}
