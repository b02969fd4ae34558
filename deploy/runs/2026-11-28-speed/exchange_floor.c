/* An exchange without a framework: PROCESSES processes send BYTES to each other over TCP on loopback, from one moment
 * on, and poll without sleeping. Prints the median of ROUNDS times from that moment to the last arrival.
 *
 *     gcc -O2 -o exchange_floor exchange_floor.c; ./exchange_floor PROCESSES BYTES ROUNDS recv|epoll
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 64
#define BEGIN_AFTER_NS 300000

struct shared {
    int ready, begun, done;
    long begin_ns, end_ns[MOST];
};

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void wait_for(int *counter, int value) {
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value) sched_yield();
}

static void arrive(int *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_RELEASE); }

/* Connects two processes: their ends. */
static void connect_pair(int ends[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, length) || listen(listener, 1)) exit(1);
    getsockname(listener, (void *)&at, &length);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (void *)&at, length)) exit(1);
    ends[1] = accept(listener, 0, 0);
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
}

int main(int count, char **words) {
    if (count < 5) return 2;
    int n = atoi(words[1]), bytes = atoi(words[2]), rounds = atoi(words[3]), polls = !strcmp(words[4], "epoll");
    struct shared *all = mmap(0, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static int fds[MOST][MOST];
    for (int a = 0; a < n; a++)
        for (int b = a + 1, ends[2]; b < n; b++) {
            connect_pair(ends);
            fds[a][b] = ends[0], fds[b][a] = ends[1];
        }
    int me = 0;
    for (int i = 1; i < n && !me; i++)
        if (!fork()) me = i;
    char *out = calloc(1, bytes), *in = malloc(bytes);
    int events = epoll_create1(0);
    for (int j = 0; j < n && polls; j++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = j};
        if (j != me) epoll_ctl(events, EPOLL_CTL_ADD, fds[me][j], &event);
    }
    long *times = calloc(rounds, sizeof *times);
    for (int round = 1; round <= rounds; round++) {
        arrive(&all->ready);
        wait_for(&all->ready, n * round);
        if (me == 0) {
            all->begin_ns = now_ns() + BEGIN_AFTER_NS;
            arrive(&all->begun);
        }
        wait_for(&all->begun, round);
        while (now_ns() < all->begin_ns) sched_yield();
        int got[MOST] = {0}, sent[MOST] = {0}, left = 2 * (n - 1);
        while (left > 0) {
            int moved = 0;
            for (int d = 1, w; d < n; d++) {
                int j = (me + d) % n;
                while (sent[j] < bytes && (w = send(fds[me][j], out, bytes - sent[j], 0)) > 0) {
                    moved = 1;
                    left -= (sent[j] += w) == bytes;
                }
            }
            struct epoll_event ready[MOST];
            int readable = polls ? epoll_wait(events, ready, MOST, 0) : n - 1;
            for (int i = 0, w; i < readable; i++) {
                int j = polls ? (int)ready[i].data.u32 : (me + n - 1 - i) % n;
                while (got[j] < bytes && (w = recv(fds[me][j], in, bytes - got[j], 0)) > 0) {
                    moved = 1;
                    left -= (got[j] += w) == bytes;
                }
            }
            if (!moved) sched_yield();
        }
        all->end_ns[me] = now_ns();
        arrive(&all->done);
        wait_for(&all->done, n * round);
        for (int i = 0; i < n; i++)
            if (all->end_ns[i] - all->begin_ns > times[round - 1]) times[round - 1] = all->end_ns[i] - all->begin_ns;
    }
    if (me) return 0;
    qsort(times, rounds, sizeof *times, by_value);
    printf("%d processes, %d bytes, %s: median %.0f us\n", n, bytes, words[4], times[rounds / 2] / 1e3);
    return 0;
}
