/* A long wire: passes all frames between two network cards of one namespace, each a fixed time after it
 * came. Made for kernels without netem.
 *
 *     gcc -O2 -o delay delay.c && ip netns exec NAMESPACE ./delay CARD CARD MICROSECONDS     (root)
 *
 * Frames need complete checksums: `ethtool -K CARD tx off` at the hosts. What a card's queue refuses is
 * dropped, as a switch does.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static long delay_ns;
static int cards[2];

static int opened(const char *name) {
    int socket_of = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), on = 1, room = 8 << 20;
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name)};
    struct packet_mreq all = {.mr_ifindex = at.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    if (socket_of < 0 || !at.sll_ifindex || bind(socket_of, (void *)&at, sizeof at) ||
        setsockopt(socket_of, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
        setsockopt(socket_of, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) ||
        setsockopt(socket_of, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
        setsockopt(socket_of, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room)) {
        perror(name);
        exit(1);
    }
    return socket_of;
}

static void *pass(void *from) {
    int side = (int)(long)from;
    char frame[2048], notes[64];
    for (;;) {
        struct iovec part = {frame, sizeof frame};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = notes, .msg_controllen = sizeof notes};
        ssize_t length = recvmsg(cards[side], &message, 0);
        if (length < 0) continue;
        struct timespec *due = (void *)CMSG_DATA(CMSG_FIRSTHDR(&message));
        due->tv_nsec += delay_ns;
        due->tv_sec += due->tv_nsec / 1000000000;
        due->tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, due, NULL);
        send(cards[!side], frame, length, MSG_DONTWAIT);
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t other;
    if (count != 4) return fputs("delay CARD CARD MICROSECONDS\n", stderr), 2;
    delay_ns = atol(words[3]) * 1000;
    cards[0] = opened(words[1]);
    cards[1] = opened(words[2]);
    pthread_create(&other, NULL, pass, (void *)1L);
    pass((void *)0L);
}
