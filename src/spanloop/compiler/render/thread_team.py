"""Threads that help with one job, as LLVM source: Python's lock is not needed while a job runs.

A job is memory of the thread that posts it. Its first word is a function `void help(ptr job, i64 number)`, which is
called with the helper's number in this job, 1, 2, ...; the word LEFT counts the helpers that have finished. Each
helper has a box, whose first word is its state:

    ABSENT, IDLE (it polls the box), ASLEEP, TAKEN (it works), or a job and a number posted to it.

A helper that finds nothing in PATIENCE polls sleeps on a lock of Python. The thread that posts a job works on it too:
the first to come claims a piece of work, so that a job is done even if no helper takes it.

    void serve(ptr box)                 a helper's whole life
    i64  post(ptr job, i64 wanted)      how many helpers it was posted to
    void finish(ptr job, i64 posted)    take it back from those who have not begun, wait for the others
    void await(ptr word, i64 count)     until the word has come to this count
"""

from __future__ import annotations

ALIGNED = 128  # bytes, of a job: there is room for a number in its address
BOXES = 64  # helpers at most
BOX, LOCK = 16, 1  # words of a box; where its lock is
LEFT = 1  # which word of a job
IDLE, ASLEEP, TAKEN, ABSENT = range(4)  # no job is at so small an address
PATIENCE = 4000  # polls: some 50 to 200 microseconds
HASTE = 2000  # polls of a counter before the processor is yielded
TOOLS = ("acquire", "release", "give_way")

_PAUSES = {"x86": "@llvm.x86.sse2.pause()", "arm": "@llvm.aarch64.hint(i32 1)", "": ""}


def team(architecture: str) -> str:
    """Source; architecture: "x86", "arm", or "" for one whose way to wait politely is not known."""
    pause = _PAUSES[architecture]
    wait = f"call void {pause}" if pause else ""
    declaration = {"x86": "declare void @llvm.x86.sse2.pause()", "arm": "declare void @llvm.aarch64.hint(i32)"}
    return "\n".join(
        (
            f"@boxes = global [{BOXES * BOX} x i64] zeroinitializer, align 128",
            f"@tools = global [{len(TOOLS)} x ptr] zeroinitializer",
            *_serve(wait),
            *_post(),
            *_finish(),
            *_await(wait),
            declaration.get(architecture, ""),
            "",
        )
    )


def _tool(name: str) -> list[str]:
    k = TOOLS.index(name)
    return [f"%{name}.at = getelementptr ptr, ptr @tools, i64 {k}", f"%{name} = load ptr, ptr %{name}.at"]


def _swapped(name: str, box: str, old: str | int, new: str | int) -> list[str]:
    """%name: did the box hold old, and does it hold new now?"""
    return [
        f"%{name}.pair = cmpxchg ptr {box}, i64 {old}, i64 {new} seq_cst seq_cst",
        f"%{name} = extractvalue {{i64, i1}} %{name}.pair, 1",
    ]


def _serve(wait: str) -> list[str]:
    return [
        "define void @serve(ptr %box) {",
        "entry:",
        f"%lock.at = getelementptr i64, ptr %box, i64 {LOCK}",
        "%lock = load ptr, ptr %lock.at",
        *_tool("acquire"),
        f"store atomic i64 {IDLE}, ptr %box seq_cst, align 8",
        "br label %watch",
        "watch:",
        "br label %look",
        "look:",
        "%n = phi i64 [0, %watch], [%n.next, %none]",
        "%word = load atomic i64, ptr %box acquire, align 8",
        f"%posted = icmp ugt i64 %word, {ABSENT}",
        "br i1 %posted, label %take, label %none",
        "none:",
        wait,
        "%n.next = add i64 %n, 1",
        f"%patient = icmp ult i64 %n.next, {PATIENCE}",
        "br i1 %patient, label %look, label %tired",
        "tired:",
        *_swapped("asleep", "%box", IDLE, ASLEEP),
        "br i1 %asleep, label %sleep, label %watch",
        "sleep:",
        "%woken = call i32 %acquire(ptr %lock, i32 1)",
        "br label %watch",
        "take:",
        *_swapped("taken", "%box", "%word", TAKEN),
        "br i1 %taken, label %work, label %watch",
        "work:",
        f"%address = and i64 %word, {-ALIGNED}",
        f"%number = and i64 %word, {ALIGNED - 1}",
        "%job = inttoptr i64 %address to ptr",
        "%help = load ptr, ptr %job",
        "call void %help(ptr %job, i64 %number)",
        f"%left.at = getelementptr i64, ptr %job, i64 {LEFT}",
        "%left = atomicrmw add ptr %left.at, i64 1 seq_cst",
        f"store atomic i64 {IDLE}, ptr %box seq_cst, align 8",
        "br label %watch",
        "}",
    ]


def _post() -> list[str]:
    return [
        "define i64 @post(ptr %job, i64 %wanted) {",
        "entry:",
        "%address = ptrtoint ptr %job to i64",
        *_tool("release"),
        "br label %box",
        "box:",
        "%k = phi i64 [0, %entry], [%k.next, %next]",
        "%posted = phi i64 [0, %entry], [%posted.now, %next]",
        "%inside = icmp ult i64 %k, " + str(BOXES),
        "%short = icmp ult i64 %posted, %wanted",
        "%on = and i1 %inside, %short",
        "br i1 %on, label %try, label %done",
        "try:",
        f"%word.number = mul i64 %k, {BOX}",
        "%word = getelementptr i64, ptr @boxes, i64 %word.number",
        "%now = load atomic i64, ptr %word acquire, align 8",
        f"%there = icmp ule i64 %now, {ASLEEP}",
        "br i1 %there, label %offer, label %next",
        "offer:",
        "%number = add i64 %posted, 1",
        "%both = add i64 %address, %number",
        *_swapped("given", "%word", "%now", "%both"),
        f"%slept = icmp eq i64 %now, {ASLEEP}",
        "%wake = and i1 %given, %slept",
        "%one = zext i1 %given to i64",
        "br i1 %wake, label %rouse, label %next",
        "rouse:",
        f"%lock.at = getelementptr i64, ptr %word, i64 {LOCK}",
        "%lock = load ptr, ptr %lock.at",
        "call void %release(ptr %lock)",
        "br label %next",
        "next:",
        "%more = phi i64 [0, %try], [%one, %offer], [1, %rouse]",
        "%posted.now = add i64 %posted, %more",
        "%k.next = add i64 %k, 1",
        "br label %box",
        "done:",
        "ret i64 %posted",
        "}",
    ]


def _finish() -> list[str]:
    return [
        "define void @finish(ptr %job, i64 %posted) {",
        "entry:",
        "%address = ptrtoint ptr %job to i64",
        "br label %box",
        "box:",
        "%k = phi i64 [0, %entry], [%k.next, %next]",
        "%taken = phi i64 [%posted, %entry], [%taken.now, %next]",
        "%inside = icmp ult i64 %k, " + str(BOXES),
        "%any = icmp ugt i64 %taken, 0",
        "%on = and i1 %inside, %any",
        "br i1 %on, label %try, label %done",
        "try:",
        f"%word.number = mul i64 %k, {BOX}",
        "%word = getelementptr i64, ptr @boxes, i64 %word.number",
        "%now = load atomic i64, ptr %word acquire, align 8",
        f"%whose = and i64 %now, {-ALIGNED}",
        "%own = icmp eq i64 %whose, %address",
        "br i1 %own, label %back, label %next",
        "back:",
        *_swapped("withdrawn", "%word", "%now", IDLE),
        "%one = zext i1 %withdrawn to i64",
        "br label %next",
        "next:",
        "%less = phi i64 [0, %try], [%one, %back]",
        "%taken.now = sub i64 %taken, %less",
        "%k.next = add i64 %k, 1",
        "br label %box",
        "done:",
        f"%left.at = getelementptr i64, ptr %job, i64 {LEFT}",
        "call void @await(ptr %left.at, i64 %taken)",
        "ret void",
        "}",
    ]


def _await(wait: str) -> list[str]:
    return [
        "define void @await(ptr %word, i64 %count) {",
        "entry:",
        "br label %look",
        "look:",
        "%n = phi i64 [0, %entry], [%n.next, %again]",
        "%now = load atomic i64, ptr %word acquire, align 8",
        "%enough = icmp uge i64 %now, %count",
        "br i1 %enough, label %done, label %wait",
        "wait:",
        wait,
        "%n.next = add i64 %n, 1",
        f"%long = icmp ugt i64 %n, {HASTE}",
        "br i1 %long, label %yield, label %again",
        "yield:",
        *_tool("give_way"),
        "%gave = call i32 %give_way()",
        "br label %again",
        "again:",
        "br label %look",
        "done:",
        "ret void",
        "}",
    ]
