# SPDX-License-Identifier: MIT
"""Seeds of the hypercall target: programs in the encoding that hypercall.c reads, see world.h for the frames."""
import struct

VA = 0x10000000
L4, L3, L2, L1, L4B, FREE_L3, FREE_L2, FREE_L1, L1B, PLAIN = range(1, 11)
LIST = PLAIN * 4096                    # where arguments are put, from GUEST_VA
P, RW, US, PSE = 1, 2, 4, 0x80
PTE = P | RW | US
SELF = bytes([6])                      # as an argument: DOMID_SELF
MMU_UPDATE, SET_GDT, MEMORY, MULTICALL, VA_MAPPING, GRANT, VCPU, MMUEXT, IRET, SCHED, EVTCHN = 1, 2, 12, 13, 14, 20, 24, 26, 23, 29, 32
RAX, RCX, RSI = 10, 11, 13
PIN_L1, PIN_L3, PIN_L4, UNPIN, NEW_BASEPTR, NEW_USER = 0, 2, 3, 4, 5, 15


def num(v):
    if isinstance(v, bytes):
        return v
    if v < 32:
        return bytes([v << 3])
    return bytes([5]) + struct.pack("<I", v) if v < 1 << 32 else bytes([7]) + struct.pack("<Q", v)


def at(offset):
    return bytes([2]) + struct.pack("<I", offset)[:3]


def entry(mfn, flags=PTE, nx=False):
    return bytes([4 | (8 if nx else 0), mfn]) + struct.pack("<H", flags)


def mode(ptwr=False, budget=0, preempt=0, heap=None):
    return bytes([ptwr | budget << 1 | preempt << 3 | (0 if heap is None else 64), heap or 0])


def call(nr, *args, cpu=0, repeat=True):
    args = list(args) + [0] * (5 - len(args))
    return bytes([5 | cpu << 3 | (64 if repeat else 0), nr]) + b"".join(num(a) for a in args)


def again(cpu=0):
    return bytes([4 | cpu << 3])


def words(offset, *values, cpu=0):
    """Up to 8 words at a time."""
    out = b""
    for i in range(0, len(values), 8):
        part = values[i:i + 8]
        out += bytes([1 | cpu << 3]) + struct.pack("<I", offset + 8 * i)[:3] + bytes([(len(part) - 2) % 8])
        out += b"".join(num(v) for v in part)
    return out


def raw(offset, data, cpu=0):
    return bytes([cpu << 3]) + struct.pack("<I", offset)[:3] + bytes([len(data) - 1]) + data


def update(*pairs, **how):
    """mmu_update of (table, index, value)."""
    flat = [w for t, i, v in pairs for w in (entry(t, 8 * i), v)]
    return words(LIST, *flat) + call(MMU_UPDATE, at(LIST), len(pairs), 0, SELF, **how)


def ext(*ops, **how):
    """mmuext_op of (command, arg1[, arg2])."""
    flat = [w for op in ops for w in (op[0], op[1], op[2] if len(op) > 2 else 0)]
    return words(LIST, *flat) + call(MMUEXT, at(LIST), len(ops), 0, SELF, **how)


def fault(mfn, index, code, reg=10, value=0, cpu=0):
    """A write at entry @index of the frame @mfn by @code, whose operand is (rdi)."""
    rip = (PLAIN + 1) * 4096
    return (raw(rip, code, cpu) + bytes([2 | cpu << 3]) + struct.pack("<I", rip)[:3] +
            struct.pack("<I", mfn * 4096 + index * 8)[:3] + bytes([14, reg]) + num(value))


MOV = b"\x48\x89\x07"                  # mov %rax, (%rdi)


def privileged(code, *regs, vector=13, cpu=0):
    """@code trapped with two registers, each a pair (number in struct cpu_regs, value)."""
    rip = (PLAIN + 2) * 4096
    return (raw(rip, code, cpu) + bytes([3 | cpu << 3 | (64 if vector == 13 else 0)]) + struct.pack("<I", rip)[:3] + bytes(3) +
            b"".join(bytes([n]) + num(v) for n, v in regs))


def multicall(*entries):
    flat = [w for nr, *args in entries for w in [nr, 0] + args + [0] * (6 - len(args))]
    return words(LIST + 512, *flat) + call(MULTICALL, at(LIST + 512), len(entries))


def seeds():
    hang = update((L2, 200, entry(FREE_L1)), (L2, 201, entry(FREE_L1)), (L2, 200, 0))
    tree = ext((PIN_L3, FREE_L3)) + update((L4, 300, entry(FREE_L3)), (L4, 1, entry(FREE_L3)))
    opened = fault(L1B, 0, MOV, value=entry(PLAIN))
    under = 140 << 21                  # what the L1B maps when it hangs in entry 140
    ctx = 16 * 4096                    # a vcpu_guest_context: in kernel mode, CR3 and CR1 are frames

    def context(cr3, cr1):
        return words(ctx + 512, 4) + words(ctx + 4992, cr1 << 12, 0, cr3 << 12)

    return {
        "hang_unhang": mode() + hang, "tree": mode() + tree + ext((UNPIN, FREE_L3)) + update((L4, 300, 0), (L4, 1, 0)),
        "tree_in_steps": mode(preempt=1) + tree + ext((UNPIN, FREE_L3)) + update((L4, 300, 0), (L4, 1, 0)),
        "two_on_one_tree": mode(preempt=1) + ext((PIN_L3, FREE_L3), repeat=False) + ext((PIN_L3, FREE_L3), cpu=1, repeat=False) +
                           again() + again(1) + again() + update((FREE_L2, 3, entry(FREE_L1)), cpu=1) + ext((UNPIN, FREE_L3)),
        "roots": mode() + ext((NEW_BASEPTR, L4B), (NEW_USER, L4), (UNPIN, L4), (UNPIN, L4B), (NEW_USER, 0)),
        "baseptr_none": mode() + ext((NEW_BASEPTR, (1 << 64) - 1)) + ext((NEW_USER, (1 << 64) - 1)),
        "no_memory": mode(heap=0) + tree + hang, "pse_linear": mode() + update((L2, 130, entry(PLAIN, PTE | PSE))) +
                     update((L2, 131, entry(L2, P | US))) + update((L4, 256, entry(FREE_L3))),
        "write_faults": mode() + fault(L1, 300, MOV, value=entry(PLAIN)) + fault(L1, 300, b"\xf0\x48\x0f\xba\x37\x01") +
                        fault(L1, 300, b"\x48\x87\x07", value=entry(L2)) + fault(L1B, 511, MOV, value=entry(PLAIN, P)),
        "ptwr_open": mode(True) + update((L2, 140, entry(L1B))) + opened + words(L1B * 4096, entry(12), entry(13, P), 0) +
                     ext((6, 0)) + opened + words(L1B * 4096, 0, entry(13), entry(12, P)) + call(VA_MAPPING, under, entry(14), 0) +
                     opened + call(EVTCHN, 4, under) + opened + words(L1B * 4096, 0, 0, 0) + update((L2, 140, 0)),
        "ptwr_two_slots": mode(True) + update((L2, 140, entry(L1B)), (L2, 141, entry(FREE_L1))) + opened +
                          fault(FREE_L1, 7, MOV, value=entry(12), cpu=1) + words(FREE_L1 * 4096, entry(L1B, P), entry(12)) +
                          words(L1B * 4096, entry(FREE_L1, P), cpu=1) + fault(L1, L1B, MOV, value=0) + ext((UNPIN, L1B)),
        "ptwr_bad_entry": mode(True) + opened + words(L1B * 4096, entry(12), entry(L2)) + ext((6, 0)),
        "multicall_iret": mode() + multicall((IRET,), (MULTICALL, at(LIST), 1), (VA_MAPPING, at(20 * 4096), 0, 1),
                                             (MMUEXT, at(LIST), 1, 0, SELF)),
        "multicall_pins": mode(budget=3) + words(LIST, PIN_L3, FREE_L3, 0, PIN_L4, 30, 0, PIN_L1, 31, 0) +
                          multicall((MMUEXT, at(LIST), 1, 0, SELF), (MMUEXT, at(LIST + 24), 1, 0, SELF),
                                    (MMUEXT, at(LIST + 48), 1, 0, SELF), (MMUEXT, at(LIST), 1, 0, SELF)),
        "vcpu_context_bad": mode() + context(L4, PLAIN) + call(VCPU, 0, 2, at(ctx)) + context(PLAIN, 0) + call(VCPU, 0, 2, at(ctx)) +
                            call(VCPU, 1, 2),
        "vcpu_up": mode(preempt=2) + context(L4B, L4) + call(VCPU, 0, 2, at(ctx)) + call(VCPU, 0, 2, at(ctx)) + call(VCPU, 1, 2) +
                   call(SCHED, 0) + call(VCPU, 2, 0) + hang + call(VCPU, 2, 1, cpu=1) + hang,
        "vcpu_info": mode() + words(LIST, 20, 64) + call(VCPU, 10, 0, at(LIST)) + call(VCPU, 10, 0, at(LIST)) +
                     call(VCPU, 10, 1, at(LIST)) + call(VCPU, 2, 1, cpu=1),
        "descriptors": mode() + words(LIST, 20, 21) + words(20 * 4096, 0x00af9b000000ffff, 0xf << 40) + call(SET_GDT, at(LIST), 600) +
                       call(SET_GDT, 0, 0) + update((L1, 22, entry(22, P | US))) + ext((13, at(22 * 4096), 512)) + ext((13, 0, 0)),
        "release": mode() + words(LIST, at(LIST + 64), 2 | 0 << 32, 0x7ff0) + words(LIST + 64, 25, 26) + call(MEMORY, 1, at(LIST)) +
                   update((L1, 25, 0), (L1, 26, 0)),
        "grants": mode() + words(LIST, 0x7ff0 | 4 << 32, 0, at(LIST + 64)) + call(GRANT, 2, at(LIST), 1) + call(GRANT, 0, at(LIST), 9),
        "events": mode() + words(LIST, 0x7ff0 | 0x7ff0 << 16) + call(EVTCHN, 6, at(LIST)) + words(LIST, 0x7ff0 | 1 << 32, 0) +
                  call(EVTCHN, 0, at(LIST)) + words(LIST, 1) + call(EVTCHN, 4, at(LIST)) + call(EVTCHN, 3, at(LIST)) +
                  words(LIST, at(LIST + 64), 1) + call(SCHED, 3, at(LIST)) + call(SCHED, 1, cpu=1),
        "privileged": mode() + b"".join(privileged(bytes.fromhex(c), (RAX, a), (RCX, b)) for c, a, b in (
            ("0f32", 0, 0xc0000080), ("0f30", 0x1000, 0xc0000100), ("0f32", 0, 0x1b), ("0f20d8", 0, 0), ("0f22e0", 0x40020, 0),
            ("0f01d1", 7, 0), ("e460", 0, 0), ("66ef", 0, 0), ("ec", 0, 0), ("fa", 0, 0), ("0f06", 0, 0))) +
            privileged(b"\x0f\x0bxen\x0f\xa2", (RAX, 1), (RCX, 0), vector=6) + privileged(b"\x0f\xa2", (RAX, 0xd), (RCX, 1)) +
            privileged(b"\xcd\x80", (RAX, 0), (RSI, 2)),
        "write_fault_forms": mode() + b"".join(fault(L1, 300 + i, bytes.fromhex(c), value=entry(PLAIN, P)) for i, c in enumerate((
            "48890f", "480907", "f0480fb10f", "f0480fc107", "480fbb07", "c70700000000", "48ab", "660fba2f01", "48832ffe",
            "66311f", "8807"))),
        "iret_user": mode() + ext((NEW_USER, L4B)) + words((DOM_TOP := 40 * 4096) - 72, 0, 0, 0, 0, 0x1000, 0x33, 0x202, 0x2000, 0x2b) +
                     raw(20 * 4096, b"\xec") + bytes([3 | 64]) + struct.pack("<I", 20 * 4096)[:3] + bytes(3) + b"\x0f" +
                     at(DOM_TOP - 72) + b"\x0c" + num(0x80) + call(IRET),
    }
