//! What the wire makes in the kernel: namespaces, interfaces, addresses, routes.
//!
//! All of it is held by this process alone. Namespaces have no names, only descriptors; a host's programs live in a process
//! namespace whose first process ends when this one does; interfaces go with the namespaces or descriptors that hold them.
//! So nothing outlives the wire's process, however that ends, but the folder in which it is written down. What a wire to the
//! outside changes on the machine, the kernel and the outside host's first process change back.

mod access;
mod init;
mod joints;
mod namespace;
mod netlink;
mod settings;
mod state;
mod way_out;

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
use namespace::Network;
use netlink::Netlink;
use state::StateFolder;
use way_out::WayOut;

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
    /// How the first process of each host is started.
    pub init: InitProgram,
}

/// Hosts and their interfaces, in the kernel.
#[derive(Debug)]
pub struct Ground {
    /// The way beyond this machine, if it is the last host.
    way_out: Option<io::Result<WayOut>>,
    // Programs end first, then what they stand on, and last what is written down.
    hosts: Vec<Namespace>,
    /// Where the relays' ends of Ethernet pairs are.
    hub: Option<Network>,
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
            let problem = "only root can connect a host to the machine's own network: omit `--outside`, or \
                run it as root";
            return Err(WireError::Forbidden(problem.into()));
        }
        if options.outside {
            refuse_second_outside(access.wires())?;
        }
        // For each host four namespaces and a pipe, for each station a device with some descriptors of its own, and a few.
        let stations: usize = plan.links.iter().map(|link| link.stations.len()).sum();
        let descriptors = 5 * plan.hosts.len() + 4 * stations + 64;
        raise_open_files(descriptors as u64).map_err(WireError::system("raising the limit on open files"))?;
        let owner = ProcessId::of(std::process::id()).ok_or_else(|| {
            WireError::Forbidden("`/proc` does not show this process: the wire needs it mounted".into())
        })?;
        let (name, file) = (options.name.clone(), options.file.clone());
        let state = WireState { name, file, owner, ready: false, hosts: Vec::new() };
        let folder = StateFolder::claim(access.wires(), &state)?;
        let outside = plan.hosts.len().checked_sub(1).filter(|_| options.outside);
        let hub = match options.devices {
            DeviceKind::Tun => None,
            DeviceKind::Ring => Some(make_hub()?),
        };
        let mut ground = Ground { way_out: None, hosts: Vec::new(), hub, state, folder };
        for host in 0..plan.hosts.len() {
            ground.hosts.push(match Some(host) == outside {
                true => Namespace::outside(&plan.hosts[host].name, &options.init)?,
                false => make_host(plan, host, &options.init, ground.folder.path())?,
            });
        }
        ground.write_down(plan, outside)?;
        let devices = ground.attach(plan, outside)?;
        ground.way_out = outside.map(|host| ground.open_way_out(host)).transpose()?;
        ground.state.ready = true;
        ground.folder.update(&ground.state)?;
        Ok((ground, devices))
    }

    /// Lets the wire's hosts reach the networks beyond this machine.
    fn open_way_out(&self, outside: usize) -> Result<io::Result<WayOut>, WireError> {
        let host = &self.hosts[outside];
        let prefix = self.outside_prefix();
        host.run(|| WayOut::open(&prefix, &mut |key, value| host.remember(key, value)))
    }

    /// Why the hosts of a wire that has this machine as its last host reach nothing beyond it.
    pub fn way_out_failure(&self) -> Option<&io::Error> {
        self.way_out.as_ref().and_then(|opened| opened.as_ref().err())
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
        if self.hub.is_some() {
            self.introduce(plan, name)?;
        }
        let beyond_ipv6 = match outside {
            Some(outside) => self.hosts[outside].run(settings::forwards_ipv6)?,
            None => false,
        };
        for (host, namespace) in self.hosts.iter().enumerate() {
            let doing = || format!("setting the routes of `{}`", namespace.name());
            namespace
                .run(|| joints::add_routes(plan, host, beyond_ipv6, name))?
                .map_err(WireError::system(doing()))?;
        }
        Ok(devices)
    }

    /// Lets the Ethernet interfaces of each link know each other's hardware addresses.
    fn introduce(&self, plan: &Plan, name: impl Fn(&Attachment) -> String + Sync) -> Result<(), WireError> {
        for (host, namespace) in self.hosts.iter().enumerate() {
            let own = || plan.hosts[host].attachments.iter().map(|own| plan.station(*own));
            let doing = || format!("setting the neighbours of `{}`", namespace.name());
            namespace
                .run(|| {
                    own().try_for_each(|own| joints::add_neighbours(&plan.links[own.link], own, &name(own)))
                })?
                .map_err(WireError::system(doing()))?;
        }
        Ok(())
    }

    /// Makes the interface of a station, and opens the relay's end of it.
    fn interface(&self, plan: &Plan, station: &Attachment, name: &str) -> io::Result<Box<dyn Device>> {
        let host = self.hosts[station.host].network();
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
            true => format!("{}{}", self.outside_prefix(), station.link),
            false => station.interface.clone(),
        }
    }

    /// The beginning of the names of this wire's interfaces on the machine's own network.
    fn outside_prefix(&self) -> String {
        format!("{OUTSIDE}{:x}-", self.state.owner.pid)
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
            first: namespace.first_process().and_then(ProcessId::of),
        });
        self.state.hosts = hosts.collect();
        self.folder.update(&self.state)
    }
}

/// The names of all wires' interfaces on the machine's own network begin with this, and go on with their process's number.
const OUTSIDE: &str = "tl-";

/// Refuses a second wire whose last host is this machine: its addresses would be those of the first one's.
fn refuse_second_outside(wires: &Path) -> Result<(), WireError> {
    let interfaces =
        nix::ifaddrs::getifaddrs().map_err(WireError::system("listing the machine's interfaces"))?;
    let owner = |name: &str| u32::from_str_radix(name.strip_prefix(OUTSIDE)?.split('-').next()?, 16).ok();
    // The kernel removes the interfaces of a wire that has ended a little later.
    let of_running = |interface: nix::ifaddrs::InterfaceAddress| {
        let is_of_wires = way_out::is_of_wires(interface.address?.as_sockaddr_in()?.ip());
        let pid =
            owner(&interface.interface_name).filter(|pid| is_of_wires && ProcessId::of(*pid).is_some())?;
        Some((interface.interface_name, pid))
    };
    let Some((taken, pid)) = interfaces.into_iter().find_map(of_running) else { return Ok(()) };
    let found = FoundWire::all(wires)?.into_iter().find(|wire| wire.state.owner.pid == pid);
    let other = found.map_or("another wire".to_owned(), |wire| format!("the wire `{}`", wire.state.name));
    Err(WireError::Forbidden(format!(
        "{other} already has this machine as its last host (interface `{taken}`), and only one wire at a time can: \
         take it down first, or omit `--outside`"
    )))
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.way_out = None;
        // All at once, and then one is waited for after the other.
        self.hosts.iter_mut().for_each(Namespace::release);
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
        "invalid wire name `{name}`: choose one with `--name`, of at most {LONGEST} letters, digits, `-`, \
        `_`, `.`"
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
    if !found.is_alive() {
        return Err(WireError::Refused(format!(
            "the init process of host `{host}` was killed, and with it all programs there; take the wire down \
            with `trunkline wire down --wire {}` and start it again",
            state.name
        )));
    }
    access::enter_that_of(state.owner.pid)?;
    Namespace::of_process(host, state.owner.pid, found.held)
}

fn make_host(plan: &Plan, host: usize, init: &InitProgram, folder: &Path) -> Result<Namespace, WireError> {
    let planned = &plan.hosts[host];
    Namespace::make(&planned.name, init, || {
        show_own_interfaces();
        give_names(&plan.names(host), folder)?;
        settings::quieten("default");
        if planned.attachments.len() > 1 {
            settings::forward()?;
        }
        loopback_up()
    })
}

fn make_hub() -> Result<Network, WireError> {
    Network::make("the links' ends", || {
        settings::quieten("default");
        Ok(())
    })
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
