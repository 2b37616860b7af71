"""QUIC by aioquic, as the other side of our endpoints: the same protocol names, streams and datagrams.

    quic.py listen MODE                       sends back what it receives, until the peer has ended
    quic.py connect MODE PORT FINGERPRINT     sends messages, and expects them back

Modes are `datagrams`, `stream` and `streams`. In each, both ends open one stream towards the other, the main one, and its
end says that nothing more follows. In `stream` it carries the bytes; in `streams` every message has a further stream.
"""

import asyncio
import datetime
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"
# The first stream of one direction that a client opens, and that a server opens (RFC 9000 section 2.1).
CLIENTS_MAIN, SERVERS_MAIN = 2, 3


def configuration(mode, is_client):
    return QuicConfiguration(
        alpn_protocols=[f"trunkline-{mode}"],
        is_client=is_client,
        max_datagram_frame_size=65_536,
        verify_mode=ssl.CERT_NONE,  # the fingerprint is compared instead
    )


class Peer(QuicConnectionProtocol):
    """Sends and receives messages in one of the modes."""

    def __init__(self, quic, mode, **kwargs):
        super().__init__(quic, **kwargs)
        self.mode = mode
        self.partial = {}
        self.terminated = asyncio.get_running_loop().create_future()
        is_client = quic.configuration.is_client
        self.ours, self.theirs = (CLIENTS_MAIN, SERVERS_MAIN) if is_client else (SERVERS_MAIN, CLIENTS_MAIN)
        self.next_stream = self.ours

    def send(self, message):
        if self.mode == "datagrams":
            self._quic.send_datagram_frame(message)
        elif self.mode == "stream":
            self._quic.send_stream_data(self.ours, message)
        else:
            self.next_stream += 4
            self._quic.send_stream_data(self.next_stream, message, end_stream=True)

    def finish(self):
        self._quic.send_stream_data(self.ours, b"", end_stream=True)

    def quic_event_received(self, event):
        if isinstance(event, events.HandshakeCompleted):
            self._quic.send_stream_data(self.ours, b"")  # opens it: aioquic wants streams opened in order
        elif isinstance(event, events.DatagramFrameReceived):
            self.received(event.data)
        elif isinstance(event, events.StreamDataReceived) and event.stream_id == self.theirs:
            if event.data:
                self.received(event.data)
            if event.end_stream:
                self.ended()
        elif isinstance(event, events.StreamDataReceived):
            message = self.partial.setdefault(event.stream_id, bytearray())
            message += event.data
            if event.end_stream:
                self.received(bytes(self.partial.pop(event.stream_id)))
        elif isinstance(event, events.ConnectionTerminated):
            self.terminated.set_result(event)


class Echo(Peer):
    def received(self, message):
        self.send(message)

    def ended(self):
        self.finish()


class Caller(Peer):
    def __init__(self, quic, **kwargs):
        super().__init__(quic, **kwargs)
        self.expected = messages(self.mode)
        self.got = []
        self.over = asyncio.get_running_loop().create_future()

    def call(self):
        for message in self.expected:
            self.send(message)
        self.transmit()

    def received(self, message):
        self.got.append(message)
        if sum(map(len, self.got)) == sum(map(len, self.expected)):
            self.finish()

    def ended(self):
        self.over.set_result(None)

    def check(self):
        if self.mode == "stream":
            assert b"".join(self.got) == b"".join(self.expected), "the bytes are others"
        else:
            assert sorted(self.got) == sorted(self.expected), "the messages are others"


def messages(mode):
    """No two alike; datagrams fit into a packet, and are few enough for a socket's buffer."""
    count, most = (40, 1000) if mode == "datagrams" else (300, 4000)
    return [number.to_bytes(2, "big") + bytes([number % 251]) * (number * number % most) for number in range(count)]


def certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "aioquic")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()), key


def fingerprint(certificate):
    return certificate.fingerprint(hashes.SHA256()).hex()


async def listen(mode):
    settings = configuration(mode, is_client=False)
    settings.certificate, settings.private_key = certificate()
    peers = asyncio.Queue()

    def create(quic, **kwargs):
        peer = Echo(quic, mode=mode, **kwargs)
        peers.put_nowait(peer)
        return peer

    server = await serve(HOST, 0, configuration=settings, create_protocol=create)
    port = server._transport.get_extra_info("sockname")[1]
    print("listening", port, fingerprint(settings.certificate), flush=True)
    end = await (await peers.get()).terminated
    print(f"terminated {end.error_code:#x}", flush=True)


async def call(mode, port, expected):
    def create(quic, **kwargs):
        return Caller(quic, mode=mode, **kwargs)

    settings = configuration(mode, is_client=True)
    async with connect(HOST, port, configuration=settings, create_protocol=create) as caller:
        shown = fingerprint(caller._quic.tls._peer_certificate)
        assert shown == expected, f"the certificate is another: {shown}"
        caller.call()
        await caller.over
        caller.check()
    print("all came back", flush=True)


match sys.argv[1:]:
    case ["listen", mode]:
        asyncio.run(listen(mode))
    case ["connect", mode, port, expected]:
        asyncio.run(call(mode, int(port), expected))
    case _:
        sys.exit(__doc__)
