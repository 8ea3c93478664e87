/* SPDX-License-Identifier: MIT */
/*
 * C types of what calls read and write, as the kernel lays them out on x86_64
 * and aarch64. libc's own are used only where they are the kernel's; the others
 * (k_*) are written here, so that neither the age of the system's headers nor
 * their macros (st_atime, si_pid) matter. A member of no length marks where a
 * part of varying length begins.
 */
#ifndef MODEL_KERNEL_STRUCTS_H
#define MODEL_KERNEL_STRUCTS_H

#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

/* For structs that exist only in a trace. */
struct no_ctype {
};

struct k_timeval {
	int64_t tv_sec, tv_usec;
};

struct k_timezone {
	int32_t tz_minuteswest, tz_dsttime;
};

struct k_itimerspec {
	struct timespec it_interval, it_value;
};

struct k_itimerval {
	struct k_timeval it_interval, it_value;
};

struct k_utimbuf {
	int64_t actime, modtime;
};

#ifdef __x86_64__
struct k_stat {
	uint64_t dev, ino, nlink;
	uint32_t mode, uid, gid, pad;
	uint64_t rdev;
	int64_t size, blksize, blocks;
	struct timespec atime, mtime, ctime;
	int64_t unused[3];
};
#else
struct k_stat {
	uint64_t dev, ino;
	uint32_t mode, nlink, uid, gid;
	uint64_t rdev, pad1;
	int64_t size;
	int32_t blksize, pad2;
	int64_t blocks;
	struct timespec atime, mtime, ctime;
	uint32_t unused[2];
};
#endif

struct k_statx_timestamp {
	int64_t tv_sec;
	uint32_t tv_nsec;
	int32_t reserved;
};

struct k_statx {
	uint32_t stx_mask, stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, spare0;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct k_statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t stx_mnt_id;
	uint32_t stx_dio_mem_align, stx_dio_offset_align;
	uint64_t stx_subvol;
	uint32_t stx_atomic_write_unit_min, stx_atomic_write_unit_max;
	uint32_t stx_atomic_write_segments_max, stx_dio_read_offset_align;
	uint32_t stx_atomic_write_unit_max_opt, spare2;
	uint64_t spare3[8];
};

struct k_fsid {
	int32_t val[2];
};

struct k_statfs {
	int64_t f_type, f_bsize;
	uint64_t f_blocks, f_bfree, f_bavail, f_files, f_ffree;
	struct k_fsid f_fsid;
	int64_t f_namelen, f_frsize, f_flags;
	int64_t spare[4];
};

struct k_ustat {
	int32_t f_tfree;
	uint64_t f_tinode;
	char f_fname[6], f_fpack[6];
};

struct k_file_attr {
	uint64_t fa_xflags;
	uint32_t fa_extsize, fa_nextents, fa_projid, fa_cowextsize;
};

struct k_xattr_args {
	uint64_t value;
	uint32_t size, flags;
};

struct k_cachestat_range {
	uint64_t off, len;
};

struct k_cachestat {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};

struct k_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[0];
};

struct k_dirent {
	uint64_t d_ino, d_off;
	uint16_t d_reclen;
	char d_name[0]; /* the type is the record's last byte */
};

struct k_file_handle {
	uint32_t handle_bytes;
	int32_t handle_type;
	uint8_t f_handle[0];
};

struct k_open_how {
	uint64_t flags, mode, resolve;
};

struct k_flock {
	int16_t l_type, l_whence;
	int64_t l_start, l_len;
	int32_t l_pid;
};

struct k_f_owner_ex {
	int32_t type, pid;
};

struct k_msghdr {
	void *msg_name;
	int32_t msg_namelen;
	struct iovec *msg_iov;
	uint64_t msg_iovlen;
	void *msg_control;
	uint64_t msg_controllen;
	uint32_t msg_flags;
};

struct k_mmsghdr {
	struct k_msghdr msg_hdr;
	uint32_t msg_len;
};

struct k_cmsghdr {
	uint64_t cmsg_len;
	int32_t cmsg_level, cmsg_type;
	uint8_t cmsg_data[0];
};

struct k_pollfd {
	int32_t fd;
	int16_t events, revents;
};

#ifdef __x86_64__
#define EPOLL_EVENT_PACKED __attribute__((packed))
#else
#define EPOLL_EVENT_PACKED
#endif

struct k_epoll_event {
	uint32_t events;
	uint64_t data;
} EPOLL_EVENT_PACKED;

union k_epoll_data {
	uint32_t u32;
	uint64_t u64;
};

struct k_pselect_sigmask {
	uint64_t ss, ss_len;
};

struct k_iocb {
	uint64_t aio_data;
	uint32_t aio_key, aio_rw_flags;
	uint16_t aio_lio_opcode;
	int16_t aio_reqprio;
	uint32_t aio_fildes;
	uint64_t aio_buf, aio_nbytes;
	int64_t aio_offset;
	uint64_t reserved2;
	uint32_t aio_flags, aio_resfd;
};

struct k_io_event {
	uint64_t data, obj;
	int64_t res, res2;
};

struct k_aio_sigset {
	uint64_t sigmask, sigsetsize;
};

struct k_io_uring_sqe {
	uint8_t opcode, flags;
	uint16_t ioprio;
	int32_t fd;
	uint64_t off, addr;
	uint32_t len, op_flags;
	uint64_t user_data;
	uint16_t buf_index, personality;
	int32_t splice_fd_in; /* or file_index, optlen */
	uint64_t addr3, pad2;
};

struct k_io_uring_cqe {
	uint64_t user_data;
	int32_t res;
	uint32_t flags;
};

struct k_io_sqring_offsets {
	uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, resv1;
	uint64_t user_addr;
};

struct k_io_cqring_offsets {
	uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1;
	uint64_t user_addr;
};

struct k_io_uring_params {
	uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd;
	uint32_t resv[3];
	struct k_io_sqring_offsets sq_off;
	struct k_io_cqring_offsets cq_off;
};

struct k_io_uring_files_update {
	uint32_t offset, resv;
	uint64_t fds;
};

struct k_io_uring_rsrc_register {
	uint32_t nr, flags;
	uint64_t resv2, data, tags;
};

struct k_io_uring_rsrc_update {
	uint32_t offset, resv;
	uint64_t data;
};

struct k_io_uring_rsrc_update2 {
	uint32_t offset, resv;
	uint64_t data, tags;
	uint32_t nr, resv2;
};

struct k_io_uring_buf_reg {
	uint64_t ring_addr;
	uint32_t ring_entries;
	uint16_t bgid, flags;
	uint32_t min_left, resv[5];
};

struct k_io_uring_file_index_range {
	uint32_t off, len;
	uint64_t resv;
};

struct k_io_uring_clone_buffers {
	uint32_t src_fd, flags, src_off, dst_off, nr, pad[3];
};

struct k_clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal;
	uint64_t stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

struct k_rlimit {
	uint64_t rlim_cur, rlim_max;
};

struct k_rusage {
	struct k_timeval ru_utime, ru_stime;
	int64_t ru_maxrss, ru_ixrss, ru_idrss, ru_isrss, ru_minflt, ru_majflt, ru_nswap;
	int64_t ru_inblock, ru_oublock, ru_msgsnd, ru_msgrcv, ru_nsignals, ru_nvcsw, ru_nivcsw;
};

struct k_tms {
	int64_t tms_utime, tms_stime, tms_cutime, tms_cstime;
};

struct k_sched_attr {
	uint32_t size, sched_policy;
	uint64_t sched_flags;
	int32_t sched_nice;
	uint32_t sched_priority;
	uint64_t sched_runtime, sched_deadline, sched_period;
	uint32_t sched_util_min, sched_util_max;
};

struct k_cap_header {
	uint32_t version;
	int32_t pid;
};

struct k_cap_data {
	uint32_t effective, permitted, inheritable;
};

struct k_sigaction {
	uint64_t handler, flags, restorer, mask;
};

struct k_stack {
	uint64_t ss_sp;
	int32_t ss_flags;
	uint64_t ss_size;
};

/* What follows the code depends on it; the usual places. */
struct k_siginfo {
	int32_t signo, error, code, pad;
	union {
		struct {
			int32_t pid;
			uint32_t uid;
			union {
				int32_t status;
				uint64_t value;
			};
			int64_t utime, stime;
		};
		uint64_t addr;
		struct {
			int64_t band;
			int32_t fd;
		};
		uint8_t room[112];
	};
};

struct k_sigevent {
	uint64_t value;
	int32_t signo, notify, thread_id;
	uint8_t room[44];
};

struct k_sembuf {
	uint16_t sem_num;
	int16_t sem_op, sem_flg;
};

struct k_msgbuf {
	int64_t mtype;
	uint8_t mtext[0];
};

struct k_mq_attr {
	int64_t mq_flags, mq_maxmsg, mq_msgsize, mq_curmsgs;
	int64_t reserved[4];
};

struct k_futex_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

struct k_timex {
	uint32_t modes;
	int64_t offset, freq, maxerror, esterror;
	int32_t status;
	int64_t constant, precision, tolerance;
	struct k_timeval time;
	int64_t tick, ppsfreq, jitter;
	int32_t shift;
	int64_t stabil, jitcnt, calcnt, errcnt, stbcnt;
	int32_t tai;
	int32_t room[11];
};

struct k_utsname {
	char sysname[65], nodename[65], release[65], version[65], machine[65], domainname[65];
};

struct k_sysinfo {
	int64_t uptime;
	uint64_t loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
	uint16_t procs, pad;
	uint64_t totalhigh, freehigh;
	uint32_t mem_unit;
};

struct k_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

struct k_mnt_id_req {
	uint32_t size, spare;
	uint64_t mnt_id, param, mnt_ns_id;
};

struct k_landlock_ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

struct k_landlock_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

struct k_file_clone_range {
	int64_t src_fd;
	uint64_t src_offset, src_length, dest_offset;
};

struct k_file_dedupe_range_info {
	int64_t dest_fd;
	uint64_t dest_offset, bytes_deduped;
	int32_t status;
	uint32_t reserved;
};

struct k_file_dedupe_range {
	uint64_t src_offset, src_length;
	uint16_t dest_count, reserved1;
	uint32_t reserved2;
	struct k_file_dedupe_range_info info[0];
};

struct k_fsxattr {
	uint32_t fsx_xflags, fsx_extsize, fsx_nextents, fsx_projid, fsx_cowextsize;
	uint8_t pad[8];
};

struct k_fiemap_extent {
	uint64_t fe_logical, fe_physical, fe_length, reserved64[2];
	uint32_t fe_flags, reserved[3];
};

struct k_fiemap {
	uint64_t fm_start, fm_length;
	uint32_t fm_flags, fm_mapped_extents, fm_extent_count, fm_reserved;
	struct k_fiemap_extent fm_extents[0];
};

struct k_fstrim_range {
	uint64_t start, len, minlen;
};

struct k_space_resv {
	int16_t l_type, l_whence;
	int64_t l_start, l_len;
	int32_t l_sysid;
	uint32_t l_pid;
	int32_t l_pad[4];
};

struct k_termios {
	uint32_t c_iflag, c_oflag, c_cflag, c_lflag;
	uint8_t c_line, c_cc[19];
};

struct k_winsize {
	uint16_t ws_row, ws_col, ws_xpixel, ws_ypixel;
};

#endif
