//! What the wire makes in the kernel: namespaces, interfaces, addresses, routes.
//!
//! All of it is held by this process alone. Namespaces have no names, only descriptors; programs live in a process
//! namespace whose first process ends when this one does; interfaces go with the namespaces or descriptors that hold them.
//! So nothing outlives the wire's process, however that ends, but the folder in which it is written down.

mod access;
mod init;
mod joints;
mod namespace;
mod netlink;
mod settings;
mod state;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use trunkline_io::packet_ring;
use trunkline_io::process::raise_open_files;

pub use access::Access;
pub use init::{InitProgram, serve as serve_init};
pub use namespace::Namespace;
pub use state::{FoundWire, HostState, InterfaceState, ProcessId, WireState};

use crate::WireError;
use crate::device::Device;
use crate::plan::{Attachment, Plan};
use init::Init;
use netlink::Netlink;
use state::StateFolder;

/// What lies between the kernel of a host and its end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A TUN interface: IP packets.
    Tun,
    /// A pair of virtual Ethernet interfaces, and a packet socket's ring on the other one: Ethernet frames, with ARP and
    /// neighbour discovery.
    Ring,
}

impl DeviceKind {
    /// The more exact of those that this kernel has: a ring's frames bear the time at which they arrived, a TUN interface's
    /// that at which the relay woke. They cost the relay the same; the sender's own work is less with TUN.
    pub fn best() -> DeviceKind {
        if packet_ring::is_supported() { DeviceKind::Ring } else { DeviceKind::Tun }
    }
}

/// What a ground is to be.
#[derive(Clone, Debug)]
pub struct GroundOptions {
    /// The wire's name: what others find it by.
    pub name: String,
    /// The experiment file, to be told by `status`.
    pub file: std::path::PathBuf,
    /// Which devices join hosts and links.
    pub devices: DeviceKind,
    /// Whether the last host is the machine itself, with its own network.
    pub outside: bool,
    /// How the first process of the wire's process namespace is started.
    pub init: InitProgram,
}

/// Hosts and their interfaces, in the kernel.
#[derive(Debug)]
pub struct Ground {
    // Programs end first, then what they stand on, and last what is written down.
    _init: Init,
    hosts: Vec<Namespace>,
    /// Where the relays' ends of Ethernet pairs are.
    hub: Option<Namespace>,
    state: WireState,
    folder: StateFolder,
}

/// The relays' ends of the links: by link, by port.
pub type Devices = Vec<Vec<Box<dyn Device>>>;

impl Ground {
    /// Makes everything. The interfaces are up, but nothing answers behind them before the devices are relayed.
    ///
    /// # Errors
    /// If the system refuses something; nothing of it remains then.
    pub fn build(
        plan: &Plan,
        access: &Access,
        options: &GroundOptions,
    ) -> Result<(Ground, Devices), WireError> {
        if options.outside && access.is_unprivileged() {
            let problem = "only root may join a host to the machine's own network: leave out `--outside`, or run it as root";
            return Err(WireError::Forbidden(problem.into()));
        }
        // For each host two namespaces, for each station a device with some descriptors of its own, and a few.
        let stations: usize = plan.links.iter().map(|link| link.stations.len()).sum();
        let descriptors = 2 * plan.hosts.len() + 4 * stations + 64;
        raise_open_files(descriptors as u64).map_err(WireError::system("raising the limit on open files"))?;
        let owner = ProcessId::of(std::process::id()).ok_or_else(|| {
            WireError::Forbidden("`/proc` does not show this process: the wire needs it mounted".into())
        })?;
        let (name, file) = (options.name.clone(), options.file.clone());
        let mut state = WireState { name, file, owner, init: None, ready: false, hosts: Vec::new() };
        let folder = StateFolder::claim(access.wires(), &state)?;
        let init = Init::start(&options.init)?;
        state.init = ProcessId::of(init.pid());
        folder.update(&state)?;
        let outside = plan.hosts.len().checked_sub(1).filter(|_| options.outside);
        let host = |host: usize| match Some(host) == outside {
            true => Namespace::outside(&plan.hosts[host].name, init.processes.clone()),
            false => make_host(plan, host, &init, folder.path()),
        };
        let hosts = (0..plan.hosts.len()).map(host).collect::<Result<_, _>>()?;
        let hub = match options.devices {
            DeviceKind::Tun => None,
            DeviceKind::Ring => Some(make_hub(&init)?),
        };
        let mut ground = Ground { _init: init, hosts, hub, state, folder };
        let devices = ground.attach(plan, outside)?;
        ground.write_down(plan, outside)?;
        Ok((ground, devices))
    }

    /// The wire's name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The hosts, in the file's order.
    pub fn hosts(&self) -> &[Namespace] {
        &self.hosts
    }

    /// The socket on which the wire is to listen.
    pub fn socket(&self) -> std::path::PathBuf {
        state::socket(self.folder.path())
    }

    /// Joins the hosts to the links.
    fn attach(&self, plan: &Plan, outside: Option<usize>) -> Result<Devices, WireError> {
        let name = |station: &Attachment| self.interface_name(station, outside);
        let attach = |station: &Attachment| {
            let host = &plan.hosts[station.host].name;
            let doing = format!("joining `{host}` to `{}`", plan.links[station.link].name);
            self.interface(plan, station, &name(station)).map_err(WireError::system(doing))
        };
        let devices = plan.links.iter().map(|link| link.stations.iter().map(attach).collect());
        let devices = devices.collect::<Result<_, _>>()?;
        for (host, namespace) in self.hosts.iter().enumerate() {
            let doing = || format!("giving `{}` its routes", namespace.name());
            namespace.run(|| joints::add_routes(plan, host, name))?.map_err(WireError::system(doing()))?;
        }
        Ok(devices)
    }

    /// Makes the interface of a station, and opens the relay's end of it.
    fn interface(&self, plan: &Plan, station: &Attachment, name: &str) -> io::Result<Box<dyn Device>> {
        let host = &self.hosts[station.host];
        let mtus = plan.links[station.link].stations.iter().map(|station| station.mtu);
        let largest = mtus.max().unwrap_or(station.mtu);
        match &self.hub {
            None => joints::tun(host, station, name, largest),
            Some(hub) => joints::pair(host, hub, station, name, largest),
        }
    }

    /// As planned; on the machine's own network it tells whose it is.
    fn interface_name(&self, station: &Attachment, outside: Option<usize>) -> String {
        match Some(station.host) == outside {
            true => format!("tl-{:x}-{}", self.state.owner.pid, station.link),
            false => station.interface.clone(),
        }
    }

    fn write_down(&mut self, plan: &Plan, outside: Option<usize>) -> Result<(), WireError> {
        let interface = |at: &(usize, u16)| {
            let station = plan.station(*at);
            InterfaceState {
                name: self.interface_name(station, outside),
                link: plan.links[at.0].name.clone(),
                addresses: core::iter::once(station.ipv4.into())
                    .chain(station.ipv6.map(IpAddr::from))
                    .collect(),
            }
        };
        let hosts = self.hosts.iter().zip(&plan.hosts).map(|(namespace, host)| HostState {
            name: host.name.clone(),
            interfaces: host.attachments.iter().map(interface).collect(),
            held: namespace.held(),
        });
        self.state.hosts = hosts.collect();
        self.state.ready = true;
        self.folder.update(&self.state)
    }
}

/// Whether a wire may have this name, which becomes that of a folder and of a socket in it.
///
/// # Errors
/// If not.
pub fn valid_name(name: &str) -> Result<(), WireError> {
    const LONGEST: usize = 40;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.') {
        return Ok(());
    }
    Err(WireError::Which(format!(
        "`{name}` cannot be a wire's name: give it one with `--name`, of at most {LONGEST} letters, digits, `-`, `_`, `.`"
    )))
}

/// A host of a running wire of another process, to start programs there.
///
/// # Errors
/// If there is no such host, its namespaces cannot be entered, or this process is itself on a host of a wire.
pub fn join(wire: &FoundWire, host: &str) -> Result<Namespace, WireError> {
    let state = &wire.state;
    let found =
        state.hosts.iter().find(|known| known.name == host).ok_or_else(|| WireError::UnknownHost {
            name: host.to_owned(),
            known: state.hosts.iter().map(|host| host.name.clone()).collect(),
        })?;
    wire.within_sight()?;
    access::enter_that_of(state.owner.pid)?;
    Namespace::of_process(host, state.owner.pid, found.held)
}

fn make_host(plan: &Plan, host: usize, init: &Init, folder: &Path) -> Result<Namespace, WireError> {
    let planned = &plan.hosts[host];
    Namespace::make(&planned.name, &init.mounts, init.processes.clone(), || {
        show_own_interfaces();
        let names = plan.names(host) + &own_name(plan);
        give_names(&names, folder)?;
        settings::quieten("default");
        if planned.attachments.len() > 1 {
            settings::forward()?;
        }
        loopback_up()
    })
}

fn make_hub(init: &Init) -> Result<Namespace, WireError> {
    Namespace::make("the links' ends", &init.mounts, init.processes.clone(), || {
        settings::quieten("default");
        Ok(())
    })
}

/// The machine's own name, for which programs look too, as a line of `/etc/hosts`; nothing if a host has it.
fn own_name(plan: &Plan) -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" | "localhost" => String::new(),
        name if plan.host(name).is_some() => String::new(),
        name => format!("127.0.1.1 {name}\n"),
    }
}

fn loopback_up() -> io::Result<()> {
    let netlink = Netlink::open()?;
    netlink.set_up(netlink.index("lo")?)
}

/// Lets `/sys/class/net` show this host's interfaces; where a container forbids it, it shows the machine's.
fn show_own_interfaces() {
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, None::<&str>);
}

/// Puts a file of our own over `/etc/hosts`. It lies on a file system in memory that is nowhere else to be seen, so that
/// it goes with the namespace.
fn give_names(names: &str, folder: &Path) -> io::Result<()> {
    if !Path::new("/etc/hosts").exists() {
        return Ok(());
    }
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("trunkline"), folder, Some("tmpfs"), plain, Some("size=1m,mode=755"))?;
    let file = folder.join("hosts");
    fs::write(&file, names)?;
    mount(Some(&file), "/etc/hosts", None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    umount2(folder, MntFlags::MNT_DETACH)?;
    Ok(())
}
