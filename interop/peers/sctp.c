/*
 * usrsctp as the other side of an SCTP association within UDP (RFC 6951), over loopback.
 *
 *     sctp listen  UDP-PORT PEER-UDP-PORT
 *     sctp connect UDP-PORT PEER-UDP-PORT COUNT ordered|unordered
 *
 * A listening peer sends every message back as it came, on its stream and in or out of order, until the other side
 * shuts down. A connecting peer sends COUNT messages, checks that each comes back once and unchanged, and in order if
 * they went so, and shuts down. Message n holds n in its first four bytes; tests/sctp.rs makes the same ones.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

enum { CONNECTS = 5001, LISTENS = 5002, STREAMS = 3, LARGEST = 1 << 17, UNDER_WAY = 16 };

static unsigned char buffer[LARGEST], expected[LARGEST];

static void die(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf(" (%s)\n", strerror(errno));
	exit(1);
}

static size_t message(uint32_t n, unsigned char *into)
{
	size_t length = n % 50 == 49 ? 60000 : 4 + n * 7919 % 6000;
	uint32_t name = htonl(n);
	memcpy(into, &name, sizeof name);
	for (size_t at = sizeof name; at < length; at++)
		into[at] = (unsigned char)(n * 31 + at * 7);
	return length;
}

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static struct socket *open_socket(uint16_t port, uint16_t peer_udp_port)
{
	struct socket *it = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!it)
		die("no socket");
	struct sctp_udpencaps encapsulation = { .sue_port = htons(peer_udp_port) };
	encapsulation.sue_address.ss_family = AF_INET;
	struct sctp_initmsg streams = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
	int on = 1;
	if (usrsctp_setsockopt(it, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation) ||
	    usrsctp_setsockopt(it, IPPROTO_SCTP, SCTP_INITMSG, &streams, sizeof streams) ||
	    usrsctp_setsockopt(it, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) ||
	    usrsctp_setsockopt(it, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on))
		die("an option is refused");
	struct sockaddr_in here = loopback(port);
	if (usrsctp_bind(it, (struct sockaddr *)&here, sizeof here))
		die("it cannot be bound");
	return it;
}

/* The length of the next message; 0 when the other side has shut down. */
static size_t take(struct socket *from, struct sctp_rcvinfo *info)
{
	size_t length = 0;
	for (;;) {
		struct sockaddr_in peer;
		socklen_t peer_length = sizeof peer, info_length = sizeof *info;
		unsigned int kind = 0;
		int flags = 0;
		ssize_t more = usrsctp_recvv(from, buffer + length, LARGEST - length, (struct sockaddr *)&peer,
					     &peer_length, info, &info_length, &kind, &flags);
		if (more < 0)
			die("nothing can be received");
		if (more == 0)
			return 0;
		length += (size_t)more;
		if (flags & MSG_EOR)
			return length;
		if (length == LARGEST)
			die("a message is too large");
	}
}

static void give(struct socket *to, const unsigned char *bytes, size_t length, uint16_t stream, int unordered)
{
	struct sctp_sndinfo info = { .snd_sid = stream, .snd_flags = unordered ? SCTP_UNORDERED : 0 };
	if (usrsctp_sendv(to, bytes, length, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) != (ssize_t)length)
		die("%zu bytes cannot be sent", length);
}

static void echo(struct socket *with)
{
	struct sctp_rcvinfo info;
	unsigned count = 0, unordered = 0;
	for (size_t length; (length = take(with, &info)) > 0; count++) {
		int overtakes = (info.rcv_flags & SCTP_UNORDERED) != 0;
		unordered += (unsigned)overtakes;
		give(with, buffer, length, info.rcv_sid, overtakes);
	}
	printf("echoed %u messages, %u of them unordered\n", count, unordered);
}

static void converse(struct socket *with, uint32_t count, int unordered)
{
	unsigned char *seen = calloc(count, 1);
	struct sctp_rcvinfo info;
	for (uint32_t sent = 0, received = 0; received < count; received++) {
		for (; sent < count && sent < received + UNDER_WAY; sent++)
			give(with, expected, message(sent, expected), unordered ? sent % STREAMS : 0, unordered);
		size_t length = take(with, &info);
		uint32_t name;
		memcpy(&name, buffer, sizeof name);
		name = ntohl(name);
		if (length < sizeof name || name >= count || seen[name]++ || (!unordered && name != received))
			die("after %u messages number %u of %zu bytes", received, name, length);
		if (length != message(name, expected) || memcmp(buffer, expected, length))
			die("message %u has changed", name);
	}
	printf("all %u messages have come back\n", count);
	/* The other side shuts down when it has heard that we do. */
	if (usrsctp_shutdown(with, SHUT_WR) || take(with, &info))
		die("it does not end");
	free(seen);
}

int main(int argc, char **argv)
{
	int connects = argc == 6 && !strcmp(argv[1], "connect");
	if (!connects && (argc != 4 || strcmp(argv[1], "listen")))
		die("usage: sctp listen|connect UDP-PORT PEER-UDP-PORT [COUNT ordered|unordered]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	usrsctp_init((uint16_t)atoi(argv[2]), NULL, NULL);
	struct socket *it = open_socket(connects ? CONNECTS : LISTENS, (uint16_t)atoi(argv[3]));
	if (connects) {
		struct sockaddr_in peer = loopback(LISTENS);
		if (usrsctp_connect(it, (struct sockaddr *)&peer, sizeof peer))
			die("it cannot connect");
		converse(it, (uint32_t)atoi(argv[4]), !strcmp(argv[5], "unordered"));
	} else {
		if (usrsctp_listen(it, 1))
			die("it cannot listen");
		printf("ready\n");
		struct socket *peer = usrsctp_accept(it, NULL, NULL);
		if (!peer)
			die("nobody is accepted");
		echo(peer);
		usrsctp_close(peer);
	}
	usrsctp_close(it);
	/* The last words of an association leave after its socket is closed. */
	for (int tries = 0; usrsctp_finish() && tries < 1000; tries++)
		usleep(10000);
	return 0;
}
