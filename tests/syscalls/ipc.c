/* SPDX-License-Identifier: MIT */
/* System V IPC and message queues. */
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include "lib.h"

static void semaphores(void)
{
	struct sembuf ops[2] = { { 0, 1, 0 }, { 1, -1, IPC_NOWAIT | SEM_UNDO } };
	struct timespec t = { 0, 1000000 };
	long id, r;

	id = t_ok(sys(semget, IPC_PRIVATE, 2, IPC_CREAT | 0600));
	expect("semget(key=0, nsems=2, semflg=IPC_CREAT|0x180) = %ld", id);
	expect("semget(key=0, nsems=-1, semflg=0) = -1 EINVAL");
	t_fails(sys(semget, IPC_PRIVATE, -1, 0), EINVAL);
	expect("semop(semid=%ld, sops=[{sem_num=0, sem_op=1, sem_flg=0}], nsops=1) = 0", id);
	t_ok(sys(semop, id, ops, 1));
	expect("semop(semid=%ld, sops=[{sem_num=0, sem_op=1, sem_flg=0}, {sem_num=1, sem_op=-1, sem_flg=IPC_NOWAIT|SEM_UNDO}], nsops=2) = -1 EAGAIN",
	       id);
	t_fails(sys(semop, id, ops, 2), EAGAIN);
	ops[1].sem_flg = 0;
	expect("semtimedop(semid=%ld, sops=[{sem_num=1, sem_op=-1, sem_flg=0}], nsops=1, timeout={tv_sec=0, tv_nsec=1000000}) = -1 EAGAIN",
	       id);
	t_fails(sys(semtimedop, id, ops + 1, 1, &t), EAGAIN);
	expect("semtimedop(semid=%ld, sops=[{sem_num=0, sem_op=1}], nsops=1, timeout=NULL) = 0",
	       id);
	t_ok(sys(semtimedop, id, ops, 1, NULL));
	expect("semctl(semid=%ld, semnum=0, op=GETVAL, arg=0) = 2", id);
	t_is(sys(semctl, id, 0, GETVAL, 0), 2);
	expect("semctl(semid=%ld, semnum=1, op=SETVAL, arg=0x7) = 0", id);
	t_ok(sys(semctl, id, 1, SETVAL, 7));
	expect("semctl(semid=%ld, semnum=0, op=IPC_RMID, arg=0) = 0", id);
	t_ok(sys(semctl, id, 0, IPC_RMID, 0));
	r = sys(semctl, id, 0, GETVAL, 0);
	expect("semctl(semid=%ld, semnum=0, op=GETVAL, arg=0) = %s", id, outcome(r));
}

static void shared_memory(void)
{
	long id, p;

	id = t_ok(sys(shmget, IPC_PRIVATE, 8192, IPC_CREAT | 0600));
	expect("shmget(key=0, size=8192, shmflg=IPC_CREAT|0x180) = %ld", id);
	expect("shmget(key=0, size=0, shmflg=IPC_CREAT) = -1 EINVAL");
	t_fails(sys(shmget, IPC_PRIVATE, 0, IPC_CREAT), EINVAL);
	p = t_ok(sys(shmat, id, NULL, SHM_RDONLY));
	expect("shmat(shmid=%ld, shmaddr=0, shmflg=SHM_RDONLY) = %s", id, hex((unsigned long)p));
	expect("shmat(shmid=-1, shmaddr=0, shmflg=0) = -1 EINVAL");
	t_fails(sys(shmat, -1, NULL, 0), EINVAL);
	expect("shmdt(shmaddr=%s) = 0", hex((unsigned long)p));
	t_ok(sys(shmdt, p));
	expect("shmdt(shmaddr=0x10) = -1 EINVAL");
	t_fails(sys(shmdt, 0x10), EINVAL);
	expect("shmctl(shmid=%ld, op=IPC_RMID, buf=0) = 0", id);
	t_ok(sys(shmctl, id, IPC_RMID, NULL));
	expect("shmctl(shmid=-1, op=IPC_STAT, buf=0x10) = -1 EINVAL");
	t_fails(sys(shmctl, -1, IPC_STAT, 0x10), EINVAL);
}

static void messages(void)
{
	struct {
		long type;
		char text[100];
	} m = { 5, "a message" };
	long id;

	id = t_ok(sys(msgget, IPC_PRIVATE, IPC_CREAT | 0600));
	expect("msgget(key=0, msgflg=IPC_CREAT|0x180) = %ld", id);
	expect("msgget(key=12345678, msgflg=0) = -1 ENOENT");
	t_fails(sys(msgget, 12345678, 0), ENOENT);
	expect("msgsnd(msqid=%ld, msgp={mtype=5, mtext=\"a message\"}, msgsz=9, msgflg=0) = 0", id);
	t_ok(sys(msgsnd, id, &m, 9, 0));
	expect("msgsnd(msqid=-1, msgp={mtype=5, mtext=\"a mes\"}, msgsz=5, msgflg=IPC_NOWAIT) = -1 EINVAL");
	t_fails(sys(msgsnd, -1, &m, 5, IPC_NOWAIT), EINVAL);
	expect("msgrcv(msqid=%ld, msgp=%s, msgsz=3, msgtyp=0, msgflg=0) = -1 E2BIG", id,
	       pointer(&m));
	t_fails(sys(msgrcv, id, &m, 3, 0, 0), E2BIG);
	expect("msgrcv(msqid=%ld, msgp={mtype=5, mtext=\"a message\"}, msgsz=100, msgtyp=-10, msgflg=MSG_NOERROR) = 9",
	       id);
	t_is(sys(msgrcv, id, &m, 100, -10, MSG_NOERROR), 9);
	expect("msgrcv(msqid=%ld, msgp=%s, msgsz=100, msgtyp=0, msgflg=IPC_NOWAIT) = -1 ENOMSG", id,
	       pointer(&m));
	t_fails(sys(msgrcv, id, &m, 100, 0, IPC_NOWAIT), ENOMSG);
	expect("msgctl(msqid=%ld, op=IPC_RMID, buf=0) = 0", id);
	t_ok(sys(msgctl, id, IPC_RMID, NULL));
	expect("msgctl(msqid=-1, op=IPC_STAT, buf=0) = -1 EINVAL");
	t_fails(sys(msgctl, -1, IPC_STAT, NULL), EINVAL);
}

/* The kernel has these names without the slash. */
static void queue(long mq)
{
	struct timespec past = { 1, 0 };
	struct mq_attr attr = { .mq_flags = O_NONBLOCK }, old;
	struct sigevent sev = { .sigev_notify = SIGEV_NONE };
	char buf[64];
	unsigned int prio = 0;

	expect("mq_timedsend(mqdes=%ld, msg_ptr=\"hello\", msg_len=5, msg_prio=3, abs_timeout=NULL) = 0",
	       mq);
	t_ok(sys(mq_timedsend, mq, "hello", 5, 3, NULL));
	expect("mq_timedreceive(mqdes=%ld, msg_ptr=\"hello\", msg_len=64, msg_prio=[3], abs_timeout=NULL) = 5",
	       mq);
	t_is(sys(mq_timedreceive, mq, buf, sizeof(buf), &prio, NULL), 5);
	expect("mq_timedreceive(mqdes=%ld, msg_ptr=%s, msg_len=64, msg_prio=%s, abs_timeout={tv_sec=1, tv_nsec=0}) = -1 ETIMEDOUT",
	       mq, pointer(buf), pointer(&prio));
	t_fails(sys(mq_timedreceive, mq, buf, sizeof(buf), &prio, &past), ETIMEDOUT);
	expect("mq_timedsend(mqdes=-1, msg_ptr=\"hello\", msg_len=5, msg_prio=0, abs_timeout={tv_sec=1, tv_nsec=0}) = -1 EBADF");
	t_fails(sys(mq_timedsend, -1, "hello", 5, 0, &past), EBADF);
	expect("mq_getsetattr(mqdes=%ld, newattr={mq_flags=O_NONBLOCK}, oldattr={mq_flags=0, mq_maxmsg=2, mq_msgsize=64, mq_curmsgs=0}) = 0",
	       mq);
	t_ok(sys(mq_getsetattr, mq, &attr, &old));
	expect("mq_getsetattr(mqdes=-1, newattr=NULL, oldattr=%s) = -1 EBADF", pointer(&old));
	t_fails(sys(mq_getsetattr, -1, NULL, &old), EBADF);
	expect("mq_notify(mqdes=%ld, sevp={sigev_notify=SIGEV_NONE}) = 0", mq);
	t_ok(sys(mq_notify, mq, &sev));
	expect("mq_notify(mqdes=%ld, sevp=NULL) = 0", mq);
	t_ok(sys(mq_notify, mq, NULL));
	expect("mq_notify(mqdes=-1, sevp=NULL) = -1 EBADF");
	t_fails(sys(mq_notify, -1, NULL), EBADF);
}

static void queues(const char *name)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 64 };
	long mq;

	mq = sys(mq_open, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600, &attr);
	expect("mq_open(name=\"%s\", oflag=O_RDWR|O_CREAT|O_CLOEXEC, mode=0600, attr={mq_flags=0, mq_maxmsg=2, mq_msgsize=64, mq_curmsgs=0}) = %s",
	       name, outcome(mq));
	if (mq < 0) {
		t_skip("message queues: %s", error_name(errno));
		return;
	}
	queue(mq);
	expect("close(fd=%ld) = 0", mq);
	t_ok(sys(close, mq));
	expect("mq_unlink(name=\"%s\") = 0", name);
	t_ok(sys(mq_unlink, name));
	expect("mq_unlink(name=\"%s\") = -1 ENOENT", name);
	t_fails(sys(mq_unlink, name), ENOENT);
	expect("mq_open(name=\"%s\", oflag=O_RDONLY, mode=0, attr=NULL) = -1 ENOENT", name);
	t_fails(sys(mq_open, name, O_RDONLY, 0, NULL), ENOENT);
}

int main(void)
{
	char *name;

	t_init();
	name = text("reprise-test-%d", getpid());
	t_begin();
	semaphores();
	shared_memory();
	messages();
	queues(name);
	t_end();
	return 0;
}
