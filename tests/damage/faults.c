/* Makes calls on one file fail, for as long as another file says so.

   cc -shared -fPIC -o faults.so faults.c -ldl
   FAULTS=control LD_PRELOAD=./faults.so program

   The control file has the name of a call (write, sync, meta: a write to the first two pages), a
   number of errno, and how many bytes a write may still take. Without it all is as ever. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int fault(int fd, const char *call, off_t offset, size_t *most) {
    char link[64], path[4096], wanted[16];
    int number = 0;
    const char *control = getenv("FAULTS");
    FILE *file = control ? fopen(control, "r") : NULL;
    if (!file) return 0;
    *most = 0;
    int read = fscanf(file, "%15s %d %zu", wanted, &number, most);
    fclose(file);
    if (read < 2) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 8 || memcmp(path + length - 8, "data.mdb", 8)) return 0;
    if (!strcmp(wanted, "meta")) {
        if (strcmp(call, "write") || offset >= 2 * sysconf(_SC_PAGESIZE)) return 0;
    } else if (strcmp(wanted, call)) {
        return 0;
    }
    return number;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    size_t most;
    int number = fault(fd, "write", offset, &most);
    if (!number) return real(fd, data, size, offset);
    if (most) return real(fd, data, most < size ? most : size, offset);
    errno = number;
    return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    return pwrite64(fd, data, size, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    size_t most;
    int number = fault(fd, "write", offset, &most);
    if (!number) return real(fd, parts, count, offset);
    if (most) return pwrite64(fd, parts[0].iov_base, parts[0].iov_len, offset);
    errno = number;
    return -1;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return pwritev(fd, parts, count, lseek(fd, 0, SEEK_CUR));
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    size_t most;
    int number = fault(fd, "sync", 0, &most);
    if (!number) return real(fd);
    errno = number;
    return -1;
}
