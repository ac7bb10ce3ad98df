// A fast stand-in for an OpenAI-compatible server, for benchmarks: Linux, one thread, loopback.
//     mock_server PORT LATENCY_MS P429 P500 [MAX_SECONDS [P_RESET [P_TORN [RETRY_MS]]]]
// PORT 0 takes a free one; "listening 127.0.0.1:PORT" is printed once it is open. P429 and P500 are
// the shares of requests refused (a 429 asks to wait RETRY_MS, 1000); of P_RESET the connection is
// reset, of P_TORN it ends in the middle of the answer. Ends after MAX_SECONDS (900) or when a pipe
// on its stdin closes.
//     POST .../chat/completions   an answer "A" to "D", which depends on the request's body alone
//                                 (bits 0 and 1 of its 64-bit FNV-1a, which the answer's id shows)
//     POST .../completions        a choice for each prompt (text or token ids); echo and logprobs
//     GET  .../models   GET /stats   GET /stats/reset   (these do not wait LATENCY_MS)
//     GET  /bodies                of each chat request's body: its hash (8 bytes), how often it came
//                                 and how often it was answered whole (4 bytes each), as they lie
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FDS = 65536, READ_SIZE = 65536, MAX_HEAD = 65536, EVENTS = 512 };
static const uint32_t HASH_START = 2166136261u;

enum { RESET = -1, TORN = -2 };  // instead of a status
static struct {
    double latency, p429, p500, max_seconds, reset, torn, retry_ms;
} settings = {.max_seconds = 900, .retry_ms = 1000};
static struct {
    unsigned long requests, chat, completions, s429, s500, resets, torn;
    unsigned long bodies, answered;  // different ones: that came, that were answered
    unsigned long connections, open, max_open, inflight, max_inflight;
} counts;

// ---- Helpers: time, random numbers, hashes, growing buffers

typedef struct { char *data; size_t len, cap; } Buffer;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The next number in [0, 1) of a fixed xorshift sequence.
static double uniform(void) {
    static uint64_t state = 88172645463325252ULL;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

// FNV-1a, going on from `hash`.
static uint32_t hashed(uint32_t hash, const char *data, size_t len) {
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)data[i]) * 16777619u;
    return hash;
}

static uint64_t hashed64(const char *data, size_t len) {
    uint64_t hash = 14695981039346656037ULL;
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)data[i]) * 1099511628211ULL;
    return hash;
}

// Makes room for `more` bytes after the buffer's end.
static void reserve(Buffer *b, size_t more) {
    if (b->len + more <= b->cap) return;
    b->cap = (b->len + more) * 2;
    if (!(b->data = realloc(b->data, b->cap))) perror("mock_server"), exit(1);
}

static void append(Buffer *b, const char *data, size_t len) {
    reserve(b, len + 1);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

// Appends as printf does; tries again where the text is longer than the room.
__attribute__((format(printf, 2, 3))) static void appendf(Buffer *b, const char *format, ...) {
    for (size_t need = 512, room = 0; room < need;) {
        va_list args;
        reserve(b, need);
        room = b->cap - b->len;
        va_start(args, format);
        need = (size_t)vsnprintf(b->data + b->len, room, format, args) + 1;
        va_end(args);
        if (need <= room) b->len += need - 1;
    }
}

// ---- The bodies of chat requests, by their hash

typedef struct { uint64_t hash; uint32_t came, answered; } Body;

static struct { Body *rows; size_t size; } bodies;

// The row of a body in a table with open addresses; a new one where it came for the first time.
static Body *body_row(uint64_t hash) {
    if (counts.bodies * 2 >= bodies.size) {
        size_t old = bodies.size;
        Body *rows = bodies.rows;
        bodies.size = old ? old * 2 : 65536;
        if (!(bodies.rows = calloc(bodies.size, sizeof *rows))) perror("mock_server"), exit(1);
        counts.bodies = 0;
        for (size_t i = 0; i < old; i++)
            if (rows[i].came) *body_row(rows[i].hash) = rows[i];
        free(rows);
    }
    size_t place = hash & (bodies.size - 1);
    while (bodies.rows[place].came && bodies.rows[place].hash != hash)
        place = (place + 1) & (bodies.size - 1);
    Body *row = &bodies.rows[place];
    if (!row->came) counts.bodies++, row->hash = hash;
    return row;
}

static void answer_bodies(Buffer *out) {
    for (size_t i = 0; i < bodies.size; i++)
        if (bodies.rows[i].came) append(out, (const char *)&bodies.rows[i], sizeof(Body));
}

// ---- Connections

typedef struct {
    int fd;
    unsigned long id;    // never used twice, unlike fd
    Buffer in, out;      // bytes not yet parsed, bytes not yet sent
    size_t sent;         // how much of `out` has gone
    size_t waiting;      // answers that the timers still hold
    bool wants_write;    // epoll also watches for room to write
    bool last_request;   // no further request is read
    bool last_answer;    // no further answer follows what `out` holds
    bool said_continue;  // "100 Continue" went out for the request at hand
    bool reset;          // it is to end at once, with nothing said
} Connection;

static int poller;
static Connection *connections[MAX_FDS];

static void watch(int operation, int fd, uint32_t events) {
    epoll_ctl(poller, operation, fd, &(struct epoll_event){events, {.fd = fd}});
}

static void accept_all(int listener) {
    static unsigned long last_id;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        Connection *c = fd < MAX_FDS ? calloc(1, sizeof *c) : NULL;
        if (!c) { close(fd); continue; }
        c->fd = fd, c->id = ++last_id;
        connections[fd] = c;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
        counts.connections++;
        if (++counts.open > counts.max_open) counts.max_open = counts.open;
    }
}

static void close_connection(Connection *c) {
    connections[c->fd] = NULL;
    counts.open--;
    close(c->fd), free(c->in.data), free(c->out.data), free(c);
}

// Sends what it can of `out`; false when the connection broke and is gone.
static bool flush(Connection *c) {
    bool full = false;
    while (c->sent < c->out.len && !full) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        full = n < 0 && errno == EAGAIN;
        if (n < 0 && !full) return close_connection(c), false;
        if (n > 0) c->sent += (size_t)n;
    }
    if (full != c->wants_write) watch(EPOLL_CTL_MOD, c->fd, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
    c->wants_write = full;
    if (!full) c->out.len = c->sent = 0;
    if (!full && c->last_answer) shutdown(c->fd, SHUT_WR);  // closing here could lose the answer
    return true;
}

// Reads what there is into `in`, ended by a zero; false when the connection ended and is gone.
static bool fill(Connection *c) {
    for (ssize_t got = READ_SIZE; got >= READ_SIZE; c->in.len += (size_t)got) {
        reserve(&c->in, READ_SIZE + 1);
        got = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len - 1, 0);
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return close_connection(c), false;
    }
    c->in.data[c->in.len] = 0;
    return true;
}

// ---- Timers: every answer waits equally long, so the order of arrival is the order of sending

typedef struct Timer {
    struct Timer *next;
    double due;
    int fd;
    unsigned long connection_id;
    bool last;  // no further answer follows on its connection
    size_t len;
    char answer[];
} Timer;

static Timer *first_timer, **timers_end = &first_timer;

static void add_timer(Connection *c, const Buffer *answer, bool last) {
    Timer *t = malloc(sizeof *t + answer->len);
    if (!t) perror("mock_server"), exit(1);
    *t = (Timer){NULL, now() + settings.latency, c->fd, c->id, last, answer->len};
    memcpy(t->answer, answer->data, answer->len);
    timers_end = &(*timers_end = t)->next;
    c->waiting++;
    if (++counts.inflight > counts.max_inflight) counts.max_inflight = counts.inflight;
}

// Sends every answer that is due, where its connection still stands.
static void run_timers(double time) {
    for (Timer *t; (t = first_timer) && t->due <= time; free(t)) {
        Connection *c = connections[t->fd];
        if (!(first_timer = t->next)) timers_end = &first_timer;
        counts.inflight--;
        if (!c || c->id != t->connection_id) continue;
        append(&c->out, t->answer, t->len);
        c->waiting--, c->last_answer = t->last;
        flush(c);
    }
}

// Milliseconds until the next timer is due, at most half a second.
static int time_to_wait(void) {
    double left = first_timer ? first_timer->due - now() : 1;
    return left <= 0 ? 0 : left < 0.5 ? (int)(left * 1000) + 1 : 500;
}

// ---- HTTP parsing

typedef struct {
    const char *method, *path, *body;
    size_t path_len, body_len;
    bool last, chunked, expects_continue;  // last: the client wants the connection closed
} Request;

static void parse_header(Request *r, const char *line) {
    if (!strncasecmp(line, "content-length:", 15)) r->body_len = strtoul(line + 15, NULL, 10);
    else if (!strncasecmp(line, "connection: close", 17)) r->last = true;
    else if (!strncasecmp(line, "transfer-encoding:", 18)) r->chunked = true;
    else if (!strncasecmp(line, "expect:", 7)) r->expects_continue = true;
}

// Parses the head in [data, end), which ends in an empty line; false when it is no HTTP request.
static bool parse_head(Request *r, const char *data, const char *end) {
    const char *newline = memmem(data, (size_t)(end - data), "\r\n", 2);
    const char *path = memchr(data, ' ', (size_t)(newline - data));
    const char *version = path ? memchr(path + 1, ' ', (size_t)(newline - path - 1)) : NULL;
    if (!version) return false;
    *r = (Request){.method = data, .path = path + 1, .body = end};
    const char *query = memchr(path, '?', (size_t)(version - path));
    r->path_len = (size_t)((query ? query : version) - r->path);
    r->last = !strncmp(version, " HTTP/1.0", 9);
    for (const char *line = newline + 2; line < end - 2; line = newline + 2) {
        parse_header(r, line);
        newline = memmem(line, (size_t)(end - line), "\r\n", 2);
    }
    return true;
}

static bool path_ends(const Request *r, const char *end) {
    size_t len = strlen(end);
    return r->path_len >= len && !memcmp(r->path + r->path_len - len, end, len);
}

// ---- JSON: only as much as finding a field, and the words of a prompt, takes

// A choice of a completion in the making, and what the request wants of it.
static struct {
    bool echo, logprobs;
    uint32_t hash;  // of its tokens so far
    size_t tokens, characters;
    Buffer text, names, values, tops, offsets;  // lists have a comma before each entry
} choice;

// Counts a token, a piece of JSON that needs no escaping, and shows it where the choice is to.
static void add_token(const char *text, int len, size_t characters, bool shown) {
    choice.hash = hashed(choice.hash, text, (size_t)len);
    choice.tokens++;
    if (!shown) return;
    append(&choice.text, text, (size_t)len);
    if (!choice.logprobs) return;
    uint32_t x = choice.hash * 1664525u + 1013904223u, whole = x >> 30, rest = (x >> 20) % 100;
    appendf(&choice.names, ",\"%.*s\"", len, text);
    appendf(&choice.offsets, ",%zu", choice.characters);
    choice.characters += characters;
    if (choice.echo && choice.tokens == 1) {  // nothing stands before it
        append(&choice.values, ",null", 5), append(&choice.tops, ",null", 5);
    } else {
        appendf(&choice.values, ",-%u.%02u", whole, rest);
        appendf(&choice.tops, ",{\"%.*s\":-%u.%02u}", len, text, whole, rest);
    }
}

static const char *skip_blanks(const char *p) { return p + strspn(p, " \n\t\r"); }

// The first character of the value of `key` (given in its quotes), or NULL.
static const char *json_value(const Request *r, const char *key) {
    const char *p = r->body, *end = p + r->body_len;
    while ((p = memmem(p, (size_t)(end - p), key, strlen(key)))) {
        p = skip_blanks(p + strlen(key));
        if (p >= end) return NULL;
        if (*p == ':') return skip_blanks(p + 1);
    }
    return NULL;
}

static long json_number(const Request *r, const char *key, long otherwise) {
    const char *p = json_value(r, key);
    return p && strchr("-0123456789", *p) ? strtol(p, NULL, 10) : otherwise;
}

// The bytes of a string's next piece, a byte or an escape; if it is white space; the characters it
// adds (none: a byte of UTF-8 that is not the first, the second half of a \u pair).
static int piece(const char *p, bool *space, size_t *characters) {
    bool escape = *p == '\\', unicode = escape && p[1] == 'u';
    bool second = unicode && (p[2] | 32) == 'd' && (p[3] | 32) >= 'c' && (p[3] | 32) <= 'f';
    *space = escape ? p[1] == 'n' || p[1] == 't' || p[1] == 'r' : *p == ' ';
    *characters = !second && (*p & 0xC0) != 0x80;
    return unicode ? 6 : escape ? 2 : 1;
}

// Splits the string at p into words, each with the white space before it; returns what follows it.
static const char *split_text(const char *p, const char *end) {
    const char *start = ++p;
    size_t characters = 0, more;
    int len;
    for (bool in_word = false, space; p < end && *p != '"'; p += len, characters += more) {
        len = piece(p, &space, &more);
        if (space && in_word) {
            add_token(start, (int)(p - start), characters, choice.echo);
            start = p, characters = 0;
        }
        in_word = !space;
    }
    if (p > start && p < end) add_token(start, (int)(p - start), characters, choice.echo);
    return p < end ? p + 1 : end;
}

// Takes the digits of each id in the array at p as a token; returns what follows the array.
static const char *split_ids(const char *p, const char *end) {
    for (size_t len; p < end && *p != ']'; p += len ? len : 1)
        if ((len = strspn(p, "0123456789"))) add_token(p, (int)len, len, choice.echo);
    return p < end ? p + 1 : end;
}

// ---- Responses

// Appends the choice; its lists without their first comma.
static void append_choice(Buffer *out, size_t index) {
    Buffer *lists[] = {&choice.names, &choice.values, &choice.tops, &choice.offsets};
    const char *titles[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
    appendf(out, "%s{\"index\":%zu,\"text\":\"", index ? "," : "", index);
    append(out, choice.text.data, choice.text.len);
    appendf(out, "\",\"finish_reason\":\"length\",\"logprobs\":%s", choice.logprobs ? "" : "null}");
    for (int i = 0; choice.logprobs && i < 4; i++) {
        appendf(out, "%s\"%s\":[", i ? "," : "{", titles[i]);
        if (lists[i]->len) append(out, lists[i]->data + 1, lists[i]->len - 1);
        appendf(out, i < 3 ? "]" : "]}}");
        lists[i]->len = 0;
    }
    choice.text.len = 0;
}

// Answers each prompt of a string, a list of strings, token ids, or a list of lists of token ids.
// Generated is " Answer: X", or " X" where one token is asked for.
static void answer_completions(Buffer *out, const Request *r) {
    const char *echo = json_value(r, "\"echo\""), *p = json_value(r, "\"prompt\"");
    const char *end = r->body + r->body_len;
    long room = json_number(r, "\"max_tokens\"", 16);
    size_t given = 0, made = 0, index = 0;
    bool many = p && *p == '[' && strchr("\"[", *skip_blanks(p + 1)), more = p;
    choice.echo = echo && *echo == 't';
    choice.logprobs = json_number(r, "\"logprobs\"", -1) >= 0;
    appendf(out, "{\"id\":\"cmpl-%lu\",\"object\":\"text_completion\",\"created\":1700000000,"
            "\"model\":\"mock\",\"choices\":[", counts.requests);
    for (; more; index++) {
        p = skip_blanks(p + many);  // past the bracket or the comma before it
        choice.hash = HASH_START, choice.tokens = choice.characters = 0;
        if (p < end && *p == '"') p = split_text(p, end);
        else if (p < end && *p == '[') p = split_ids(p, end);
        else break;
        given += choice.tokens, made -= choice.tokens;
        const char *letter = &" A B C D"[(choice.hash & 3) * 2];
        if (room > 1) add_token(" Answer:", 8, 8, true);
        if (room > 0) add_token(letter, 2, 2, true);
        made += choice.tokens;
        append_choice(out, index);
        p = skip_blanks(p);
        more = many && *p == ',';
    }
    appendf(out, "],\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,"
            "\"total_tokens\":%zu}}", given, made, given + made);
}

static void answer_chat(Buffer *out, const Request *r) {
    unsigned long long hash = hashed64(r->body, r->body_len);
    appendf(out, "{\"id\":\"chatcmpl-%016llx\",\"object\":\"chat.completion\",\"created\":1700000000,"
            "\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
            "\"content\":\"%c\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":"
            "{\"prompt_tokens\":40,\"completion_tokens\":1,\"total_tokens\":41}}",
            hash, "ABCD"[hash & 3]);
}

// Writes the counts; a reset then starts them again, from what is open and in flight.
static void answer_stats(Buffer *out, bool reset) {
    appendf(out, "{\"requests\":%lu,\"chat\":%lu,\"completions\":%lu,\"s429\":%lu,\"s500\":%lu,"
            "\"resets\":%lu,\"torn\":%lu,\"bodies\":%lu,\"answered\":%lu,"
            "\"connections\":%lu,\"open\":%lu,\"max_open\":%lu,\"inflight\":%lu,"
            "\"max_inflight\":%lu}", counts.requests, counts.chat, counts.completions, counts.s429,
            counts.s500, counts.resets, counts.torn, counts.bodies, counts.answered, counts.connections, counts.open, counts.max_open, counts.inflight,
            counts.max_inflight);
    if (!reset) return;
    counts.requests = counts.chat = counts.completions = counts.s429 = counts.s500 = 0;
    counts.resets = counts.torn = 0;
    counts.connections = 0, counts.max_open = counts.open, counts.max_inflight = counts.inflight;
}

static int refuse(Buffer *out, int status, const char *message) {
    appendf(out, "{\"error\":{\"message\":\"%s\",\"code\":%d}}", message, status);
    return status;
}

// Writes the answer's body and returns its status.
static int answer(Buffer *out, const Request *r) {
    bool post = !strncmp(r->method, "POST ", 5);
    bool chat = post && path_ends(r, "/chat/completions");
    Body *row = chat ? body_row(hashed64(r->body, r->body_len)) : NULL;
    double chance = uniform();
    counts.requests++;
    if (row) row->came++;
    if (chance < settings.p429) return counts.s429++, refuse(out, 429, "Too Many Requests");
    chance -= settings.p429;
    if (chance < settings.p500) return counts.s500++, refuse(out, 500, "Mock error");
    chance -= settings.p500;
    if (post && chance < settings.reset) return counts.resets++, RESET;
    bool torn = post && chance - settings.reset < settings.torn;
    if (chat) counts.chat++, answer_chat(out, r);
    else if (post && path_ends(r, "/completions")) counts.completions++, answer_completions(out, r);
    else if (!post && path_ends(r, "/models"))
        appendf(out, "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\","
                "\"created\":1,\"owned_by\":\"mock\"}]}");
    else return refuse(out, 404, "Not Found");
    if (torn) return counts.torn++, TORN;
    if (chat && !row->answered++) counts.answered++;
    return 200;
}

// Puts head and body on the connection, at once or by a timer; no answer overtakes another.
static void reply(Connection *c, int status, const Buffer *body, bool last, bool at_once) {
    static Buffer delayed;
    bool wait = settings.latency > 0 && (!at_once || c->waiting);
    Buffer *out = wait ? &delayed : &c->out;
    delayed.len = 0;
    bool torn = status == TORN, fine = torn || status == 200;
    appendf(out, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nx-request-id: r%lu\r\n",
            fine ? 200 : status, fine ? "OK" : "Refused", counts.requests);
    if (status == 429) appendf(out, "Retry-After-Ms: %.0f\r\n", settings.retry_ms);
    appendf(out, "%sContent-Length: %zu\r\n\r\n", last && !torn ? "Connection: close\r\n" : "",
            body->len);
    append(out, body->data, torn ? body->len / 2 : body->len);
    c->last_request = last;
    if (wait) add_timer(c, out, last);
    else c->last_answer = last;
}

// Answers the request that `data` starts with; returns its size, or 0 when not all of it is there.
// A request that cannot be read is refused, and is the connection's last.
static size_t serve_one(Connection *c, const char *data, size_t len) {
    static Buffer body;
    Request r;
    const char *blank = memmem(data, len, "\r\n\r\n", 4);
    int bad = 0;
    body.len = 0;
    if (!blank && len <= MAX_HEAD) return 0;
    if (!blank || !parse_head(&r, data, blank + 4)) bad = refuse(&body, 400, "Not HTTP");
    else if (r.chunked) bad = refuse(&body, 411, "Send a Content-Length");
    if (bad) return reply(c, bad, &body, true, false), len;

    size_t head = (size_t)(r.body - data);
    bool whole = len - head >= r.body_len, go_on = r.expects_continue && !whole;
    if (go_on && !c->said_continue) appendf(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    c->said_continue = go_on;
    if (!whole) return 0;
    bool stats = path_ends(&r, "/stats"), reset = path_ends(&r, "/stats/reset");
    bool bodies = path_ends(&r, "/bodies");
    int status = 200;
    if (stats || reset) answer_stats(&body, reset);
    else if (bodies) answer_bodies(&body);
    else status = answer(&body, &r);
    c->reset = status == RESET;
    if (c->reset) c->last_request = true;
    else reply(c, status, &body, r.last || status == TORN, stats || reset || bodies);
    return head + r.body_len;
}

// Reads, and answers every whole request there is.
static void serve(Connection *c) {
    if (!fill(c)) return;
    size_t done = 0, size = 1;
    while (size && !c->last_request)
        done += size = serve_one(c, c->in.data + done, c->in.len - done);
    if (c->reset) {  // a close that does not linger is a reset
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        close_connection(c);
        return;
    }
    if (c->last_request) done = c->in.len;
    memmove(c->in.data, c->in.data + done, c->in.len - done);
    c->in.len -= done;
    if (c->out.len) flush(c);
}

// ---- Main

static volatile sig_atomic_t stopped;

static void stop(int signal_number) { (void)signal_number, stopped = 1; }

// Opens the port, prints it, and returns its socket.
static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *generic = (struct sockaddr *)&address;
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, generic, size) || listen(fd, 4096) || getsockname(fd, generic, &size))
        perror("mock_server: 127.0.0.1"), exit(1);
    printf("listening 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void handle(const struct epoll_event *event, int listener) {
    int fd = event->data.fd;
    Connection *c = connections[fd];
    if (fd == listener) accept_all(listener);
    else if (fd == STDIN_FILENO) stopped = 1;
    else if (c && (!(event->events & EPOLLOUT) || flush(c)) && event->events != EPOLLOUT) serve(c);
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 9)
        return fprintf(stderr, "usage: mock_server PORT LATENCY_MS P429 P500 [MAX_SECONDS "
                       "[P_RESET [P_TORN [RETRY_MS]]]]\n"), 2;
    settings.latency = atof(argv[2]) / 1000;
    settings.p429 = atof(argv[3]), settings.p500 = atof(argv[4]);
    if (argc > 5) settings.max_seconds = atof(argv[5]);
    if (argc > 6) settings.reset = atof(argv[6]);
    if (argc > 7) settings.torn = atof(argv[7]);
    if (argc > 8) settings.retry_ms = atof(argv[8]);
    signal(SIGTERM, stop), signal(SIGINT, stop);
    struct rlimit files;  // as many connections as the system lets this process have
    if (!getrlimit(RLIMIT_NOFILE, &files))
        files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    poller = epoll_create1(0);
    int listener = listen_on(atoi(argv[1]));
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLRDHUP);  // its end; a plain file cannot be watched
    struct epoll_event events[EVENTS];
    for (double time = now(), end = time + settings.max_seconds; !stopped && time < end;) {
        int n = epoll_wait(poller, events, EVENTS, time_to_wait());
        for (int i = 0; i < n; i++) handle(&events[i], listener);
        run_timers(time = now());
    }
    return 0;
}
