//! A kernel that runs: its clock, its interfaces, and the messages that follow from them.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::personality::{self, Persona};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tempfile::TempDir;

use crate::KernelError;
use crate::console;
use crate::device::{Answer, Device};
use crate::init::{self, VARIABLE};
use crate::time_travel::{self, Message, Operation};
use crate::vhost::{self, Header, Request};

/// The time of day at which every kernel starts: the first second of 2026. What programs do must not depend on today.
const TIME_OF_DAY: u64 = 1_767_225_600_000_000_000;
/// The variable with the seed of a kernel's random numbers; the kernels of [`build`](mod@crate::build) ask for it.
const SEED: &str = "UML_RANDOM_SEED";
/// Milliseconds to wait for a message before a look at whether the kernel still runs.
const POLL_INTERVAL_MS: u8 = 200;
/// Time for a kernel to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Time in which a kernel may compute without a message: virtual time stands still meanwhile.
const COMPUTE_TIMEOUT: Duration = Duration::from_secs(60);
/// The end of a console that is kept, in bytes.
const MAX_CONSOLE: u64 = 16 << 20;

/// Parameters of a kernel.
#[derive(Clone, Debug)]
pub struct Boot<'b> {
    /// The host's name.
    pub name: &'b str,
    /// The kernel: an executable User-Mode Linux.
    pub kernel: &'b Path,
    /// Its first process, a program that calls [`init::run`].
    pub init: &'b Path,
    /// The task of its first process.
    pub setup: &'b init::Setup,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its memory in megabytes.
    pub memory: u32,
}

/// A kernel that runs on request.
pub struct Guest {
    name: String,
    process: Child,
    clock: UnixStream,
    interfaces: Vec<Interface>,
    /// The time of the simulation, in the kernel's own nanoseconds.
    now: u64,
    /// When it wants to run.
    wants: Option<u64>,
    folder: TempDir,
}

/// One of its devices.
struct Interface {
    listener: UnixListener,
    line: Option<UnixStream>,
    /// For the device's own messages.
    channel: Option<UnixStream>,
    device: Device,
    sent: Vec<(u64, Vec<u8>)>,
}

/// The sender of a message.
enum Heard {
    Clock,
    Connection(usize),
    Line(usize),
    Channel,
}

impl Guest {
    /// Starts a kernel, with an interface for every one of the set-up. It has run until it waits for the first time.
    ///
    /// # Errors
    /// If it does not start, or does not let its clock be turned.
    pub fn start(boot: &Boot<'_>) -> Result<Guest, KernelError> {
        let failed = |what: &'static str| {
            let name = boot.name.to_owned();
            move |error: io::Error| KernelError::System { host: name, what, error }
        };
        let folder = tempfile::tempdir().map_err(failed("no folder for its sockets"))?;
        let path = |name: &str| folder.path().join(name);
        let clock = UnixListener::bind(path("clock")).map_err(failed("no socket for its clock"))?;
        let setup = serde_json::to_vec(boot.setup).map_err(io::Error::other);
        setup.and_then(|setup| std::fs::write(path("setup"), setup)).map_err(failed("no set-up"))?;
        let console = File::create(path("console")).map_err(failed("no file for its console"))?;
        let mut command = Command::new(boot.kernel);
        command
            .args([&format!("mem={}M", boot.memory), "root=/dev/root", "rootfstype=hostfs", "rootflags=/"])
            .args(["ro", "quiet", "panic=-1", "virtio_net.napi_tx=0", "con=null", "con0=null,fd:1"])
            .args(["time-travel=ext:clock", "uml_dir=control"])
            .arg(format!("init={}", boot.init.display()))
            .arg(format!("{VARIABLE}=1"));
        // Replaced by its connection. Nothing may fail between the start and what ends the process.
        let unconnected = UnixStream::pair().map_err(failed("no socket for its clock"))?.0;
        let mut interfaces = Vec::new();
        for (index, interface) in boot.setup.interfaces.iter().enumerate() {
            let listener = UnixListener::bind(path(&format!("net{index}")));
            let listener = listener.map_err(failed("no socket for an interface"))?;
            // The last number orders the devices.
            command.arg(format!("virtio_uml.device=net{index}:1:{index}"));
            let device = Device::new(interface.mac, interface.mtu);
            interfaces.push(Interface { listener, line: None, channel: None, device, sent: Vec::new() });
        }
        // The layout of its memory shows in what it sends: how much of its receive buffer a packet takes.
        let _ = personality::set(personality::get().unwrap_or(Persona::empty()) | Persona::ADDR_NO_RANDOMIZE);
        // Its command line is part of what a kernel draws random numbers from: it names nothing that differs from run to run.
        let process = command
            .current_dir(folder.path())
            // Its programs are processes of this machine, which end with it only if all are killed together. A Ctrl-C for the
            // simulation does not end it either.
            .process_group(0)
            .env(SEED, boot.seed.to_string())
            .stdin(Stdio::null())
            .stdout(console.try_clone().map_err(failed("no console"))?)
            .stderr(console)
            .spawn()
            .map_err(failed("it does not start"))?;
        let mut guest = Guest {
            name: boot.name.to_owned(),
            process,
            clock: unconnected,
            interfaces,
            now: 0,
            wants: None,
            folder,
        };
        let started = Instant::now();
        loop {
            let mut ready = [PollFd::new(clock.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, PollTimeout::from(POLL_INTERVAL_MS)) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => break,
                Err(error) => return Err(guest.system("its clock")(error.into())),
            }
            if guest.check_alive().is_err() {
                let kernel = boot.kernel.display().to_string();
                return Err(KernelError::NoKernel { host: boot.name.to_owned(), kernel });
            }
            if started.elapsed() > CONNECT_TIMEOUT {
                return Err(KernelError::NoTimeTravel { host: boot.name.to_owned() });
            }
        }
        guest.clock = clock.accept().map_err(guest.system("its clock"))?.0;
        guest.serve()?;
        Ok(guest)
    }

    /// When it wants to run, in its own nanoseconds.
    pub fn wants(&self) -> Option<u64> {
        self.wants
    }

    /// The text of its console; of a long one the last 16 MiB, after a line with the number of bytes left out.
    pub fn console(&self) -> String {
        console::end(&self.folder.path().join("console"), MAX_CONSOLE)
    }

    /// Lets it run at `now`, until it waits again; up to `until` it need not ask. Both are nanoseconds since the kernel's
    /// start.
    ///
    /// # Errors
    /// If it ends or says what makes no sense.
    pub fn run(&mut self, now: u64, until: u64) -> Result<(), KernelError> {
        self.now = now;
        self.wants = None;
        if until > now {
            self.say(Message { operation: Operation::FreeUntil, number: 0, time: until })?;
        }
        self.say(Message { operation: Operation::Run, number: 0, time: now })?;
        self.serve()
    }

    /// The frames that it has sent by an interface since the last call, with their times and Ethernet headers.
    pub fn sent(&mut self, interface: usize) -> std::vec::Drain<'_, (u64, Vec<u8>)> {
        self.interfaces[interface].sent.drain(..)
    }

    /// Gives it a packet at `now`, in nanoseconds since the kernel's start, while it waits.
    ///
    /// # Errors
    /// If it ends or says what makes no sense.
    pub fn receive(
        &mut self,
        now: u64,
        interface: usize,
        header: &[u8; 14],
        packet: &[u8],
    ) -> Result<(), KernelError> {
        self.now = now;
        let device = &mut self.interfaces[interface].device;
        let call = device.receive(header, packet).map_err(|error| self.device(error))?;
        match call {
            Some(queue) => self.call(interface, queue),
            None => Ok(()),
        }
    }

    /// Answers it until it waits.
    fn serve(&mut self) -> Result<(), KernelError> {
        loop {
            match self.hear(None)? {
                Heard::Clock => {
                    if self.handle_clock()? == Operation::Wait {
                        return Ok(());
                    }
                }
                Heard::Connection(index) => {
                    let accepted = self.interfaces[index].listener.accept();
                    self.interfaces[index].line =
                        Some(accepted.map_err(self.system("an interface does not connect"))?.0);
                }
                Heard::Line(index) => self.handle_request(index)?,
                Heard::Channel => {}
            }
        }
    }

    /// Tells it of a used queue, and waits until it knows.
    fn call(&mut self, index: usize, queue: u32) -> Result<(), KernelError> {
        let Some(channel) = &self.interfaces[index].channel else { return Ok(()) };
        (&mut &*channel).write_all(&vhost::call(queue)).map_err(self.system("an interrupt"))?;
        loop {
            match self.hear(Some(index))? {
                Heard::Clock => {
                    self.handle_clock()?;
                }
                Heard::Channel => {
                    let mut reply = [0; vhost::HEADER + 8];
                    let Some(channel) = &self.interfaces[index].channel else { return Ok(()) };
                    return (&mut &*channel).read_exact(&mut reply).map_err(self.system("an interrupt"));
                }
                Heard::Connection(_) | Heard::Line(_) => {}
            }
        }
    }

    /// Waits until it says something: to its clock or its devices, or, while an interrupt of a device waits for its answer,
    /// to its clock or that device.
    fn hear(&mut self, called: Option<usize>) -> Result<Heard, KernelError> {
        let mut since = None;
        loop {
            let mut from = vec![(Heard::Clock, self.clock.as_fd())];
            match called {
                Some(index) => {
                    let channel = self.interfaces[index].channel.as_ref();
                    from.extend(channel.map(|channel| (Heard::Channel, channel.as_fd())));
                }
                None => from.extend(self.interfaces.iter().enumerate().map(|(index, interface)| {
                    match &interface.line {
                        Some(line) => (Heard::Line(index), line.as_fd()),
                        None => (Heard::Connection(index), interface.listener.as_fd()),
                    }
                })),
            }
            let mut ready: Vec<PollFd<'_>> = from
                .iter()
                .map(|(_, fd): &(_, BorrowedFd<'_>)| PollFd::new(*fd, PollFlags::POLLIN))
                .collect();
            let polled = poll(&mut ready, PollTimeout::from(POLL_INTERVAL_MS));
            let place = ready.iter().position(|fd| fd.any().unwrap_or(false));
            match polled {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(self.system("its sockets")(error.into())),
            }
            if let Some(place) = place {
                return Ok(from.swap_remove(place).0);
            }
            self.check_alive()?;
            if since.get_or_insert_with(Instant::now).elapsed() > COMPUTE_TIMEOUT {
                return Err(KernelError::Busy { host: self.name.clone() });
            }
        }
    }

    /// Answers a message to its clock.
    fn handle_clock(&mut self) -> Result<Operation, KernelError> {
        let mut bytes = [0; time_travel::LENGTH];
        if self.clock.read_exact(&mut bytes).is_err() {
            return Err(self.ended());
        }
        let unknown = |operation| KernelError::Clock { host: self.name.clone(), operation };
        let message = Message::read(&bytes).map_err(unknown)?;
        let mut time = 0;
        match message.operation {
            Operation::Acknowledge => return Ok(Operation::Acknowledge),
            Operation::Request => self.wants = Some(message.time),
            Operation::Update => self.now = message.time,
            Operation::Get => time = self.now,
            Operation::GetTimeOfDay => time = TIME_OF_DAY + self.now,
            Operation::Start | Operation::Wait | Operation::Run | Operation::FreeUntil => {}
        }
        self.say(message.acknowledge(time))?;
        Ok(message.operation)
    }

    /// Answers a request to a device.
    fn handle_request(&mut self, index: usize) -> Result<(), KernelError> {
        let Some(line) = &self.interfaces[index].line else { return Ok(()) };
        let mut bytes = [0; vhost::HEADER];
        let received = receive_with_file(line, &mut bytes);
        let (count, mut file) = received.map_err(|error| self.system("an interface")(error))?;
        let mut line = line;
        let rest = line.read_exact(&mut bytes[count..]);
        if count == 0 || rest.is_err() {
            return Err(self.ended());
        }
        let malformed = |error| KernelError::Device {
            host: self.name.clone(),
            error: crate::device::DeviceError::from(error),
        };
        let header = Header::read(&bytes).map_err(malformed)?;
        let mut payload = vec![0; header.size];
        line.read_exact(&mut payload).map_err(self.system("an interface"))?;
        let request = Request::read(&header, &payload).map_err(malformed)?;
        if request == Request::SetChannel {
            let file = file.take().map(|file| UnixStream::from(std::os::fd::OwnedFd::from(file)));
            self.interfaces[index].channel = file;
        }
        let handled = self.interfaces[index].device.handle(request, file);
        let Answer { reply, call } = handled.map_err(|error| self.device(error))?;
        let Interface { device, sent, .. } = &mut self.interfaces[index];
        sent.extend(device.sent().map(|frame| (self.now, frame)));
        if let Some(queue) = call {
            self.call(index, queue)?;
        }
        let reply = match reply {
            Some(reply) => header.reply(&reply),
            None if header.needs_reply => header.reply(&0u64.to_ne_bytes()),
            None => return Ok(()),
        };
        let Some(line) = &self.interfaces[index].line else { return Ok(()) };
        (&mut &*line).write_all(&reply).map_err(self.system("an interface"))
    }

    fn say(&mut self, message: Message) -> Result<(), KernelError> {
        let said = self.clock.write_all(&message.bytes());
        said.map_err(|_| self.ended())
    }

    fn check_alive(&mut self) -> Result<(), KernelError> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> KernelError {
        let console = console::last_lines(&self.folder.path().join("console"));
        KernelError::Ended { host: self.name.clone(), console }
    }

    fn device(&self, error: crate::device::DeviceError) -> KernelError {
        KernelError::Device { host: self.name.clone(), error }
    }

    fn system(&self, what: &'static str) -> impl FnOnce(io::Error) -> KernelError + use<> {
        let host = self.name.clone();
        move |error| KernelError::System { host, what, error }
    }
}

/// Receives bytes, and the file that may come with them.
fn receive_with_file(line: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Option<File>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(bytes)];
    let received = recvmsg(line, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next().map(File::from),
        _ => None,
    });
    Ok((received.bytes, file))
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Errors mean that it has gone.
        let _ = killpg(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL);
        let _ = self.process.wait();
    }
}
