// A bulk transfer and a call, for run.sh. All times are of CLOCK_MONOTONIC, which the whole network shares.
//
//   traffic sink PORT FLOWS SECONDS               receives FLOWS transfers; prints their goodput in Mbit/s
//   traffic bulk HOST PORT CONTROL SECONDS LOG    sends one; LOG gets the sender's state every 5 ms
//   traffic listen PORT                           receives a call; prints when each packet was sent (s) and its delay (ms)
//   traffic call HOST PORT SECONDS                sends 80 bytes every 10 ms
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FLOWS = 64, VOICE = 80 };
static const double END = -1;

struct packet {
    double sent, start;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct sockaddr_in address(const char *host, const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

static int fail(const char *what) {
    perror(what);
    return 1;
}

static int sink(const char *port, int flows, double seconds) {
    static char bytes[1 << 18];
    struct pollfd ends[MAX_FLOWS + 1] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
    struct sockaddr_in here = address("0.0.0.0", port);
    if (flows > MAX_FLOWS || bind(ends[0].fd, (void *)&here, sizeof here) || listen(ends[0].fd, MAX_FLOWS)) return fail("sink");
    int accepted = 0, closed = 0;
    long in_time = 0, all = 0;
    double start = 0;
    while (closed < flows) {
        if (poll(ends, (nfds_t)accepted + 1, -1) < 0) return fail("poll");
        if (ends[0].revents) {
            int end = accept(ends[0].fd, 0, 0);
            fcntl(end, F_SETFL, O_NONBLOCK);
            ends[++accepted] = (struct pollfd){.fd = end, .events = POLLIN};
            if (start == 0) start = now();
        }
        for (int i = 1; i <= accepted; i++) {
            if (ends[i].fd < 0 || !ends[i].revents) continue;
            ssize_t length = read(ends[i].fd, bytes, sizeof bytes);
            if (length > 0) {
                all += length;
                if (now() - start <= seconds) in_time = all;
            } else if (length == 0) {
                close(ends[i].fd);
                ends[i].fd = -1;
                closed++;
            }
        }
    }
    printf("goodput %.3f Mbit/s\n", (double)in_time * 8 / seconds / 1e6);
    return 0;
}

static int bulk(struct sockaddr_in peer, const char *control, double seconds, const char *log_name) {
    static char message[8192];
    int end = socket(AF_INET, SOCK_STREAM, 0);
    FILE *log = fopen(log_name, "w");
    if (!log || setsockopt(end, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control))) return fail(control);
    if (connect(end, (void *)&peer, sizeof peer)) return fail("connect");
    fcntl(end, F_SETFL, O_NONBLOCK);
    double start = now(), next = start;
    for (double t = start; t < start + seconds; t = now()) {
        if (t >= next) {
            struct tcp_info info;
            socklen_t length = sizeof info;
            getsockopt(end, IPPROTO_TCP, TCP_INFO, &info, &length);
            fprintf(log, "%.4f s: cwnd %u ssthresh %u unacked %u rtt %u us retransmitted %u\n", t - start, info.tcpi_snd_cwnd,
                    info.tcpi_snd_ssthresh, info.tcpi_unacked, info.tcpi_rtt, info.tcpi_total_retrans);
            next = t + 0.005;
        }
        if (write(end, message, sizeof message) < 0) poll(&(struct pollfd){.fd = end, .events = POLLOUT}, 1, 5);
    }
    return fclose(log);
}

static int listen_to_call(const char *port) {
    char bytes[VOICE];
    struct packet packet;
    int end = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = address("0.0.0.0", port);
    if (bind(end, (void *)&here, sizeof here)) return fail("listen");
    while (recv(end, bytes, sizeof bytes, 0) == VOICE) {
        double t = now();
        memcpy(&packet, bytes, sizeof packet);
        if (packet.sent == END) break;
        printf("%.6f %.6f\n", packet.sent - packet.start, (t - packet.sent) * 1e3);
    }
    return 0;
}

static int call(struct sockaddr_in peer, double seconds) {
    char bytes[VOICE] = {0};
    int end = socket(AF_INET, SOCK_DGRAM, 0);
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    struct packet packet = {.start = now()};
    for (int n = 0; n < seconds * 100; n++) {
        packet.sent = now();
        memcpy(bytes, &packet, sizeof packet);
        sendto(end, bytes, sizeof bytes, 0, (void *)&peer, sizeof peer);
        due.tv_nsec += 10000000;
        if (due.tv_nsec >= 1000000000) due.tv_nsec -= 1000000000, due.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, 0);
    }
    // Any of them may be lost.
    packet.sent = END;
    memcpy(bytes, &packet, sizeof packet);
    for (int n = 0; n < 5; n++) {
        sleep(1);
        sendto(end, bytes, sizeof bytes, 0, (void *)&peer, sizeof peer);
    }
    return 0;
}

int main(int count, char **words) {
    if (count == 5 && !strcmp(words[1], "sink")) return sink(words[2], atoi(words[3]), atof(words[4]));
    if (count == 7 && !strcmp(words[1], "bulk")) return bulk(address(words[2], words[3]), words[4], atof(words[5]), words[6]);
    if (count == 3 && !strcmp(words[1], "listen")) return listen_to_call(words[2]);
    if (count == 5 && !strcmp(words[1], "call")) return call(address(words[2], words[3]), atof(words[4]));
    fprintf(stderr, "see the first lines of traffic.c\n");
    return 2;
}
