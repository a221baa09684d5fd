#!/bin/sh
# SPDX-License-Identifier: MIT
# The guest's init: runs what the kernel command line asks for, prints results as lines that begin with "PT" (see
# ptbench.h; stress/benchlib/console.py reads them), and powers off.
#   ptbench.run=A:B      workloads: dbench, forkexec, micro, pte, storm (until a line is typed), idle (none); without it an interactive shell
#   ptbench.secs=S       seconds of each part of forkexec, and of each dbench run
#   ptbench.clients=N:M  client counts of dbench; forkexec has one client a vCPU
#   ptbench.marks=1      the host reads the hypervisor's counters at marks
#   ptbench.icount=1     the TSC counts instructions
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp
cd /tmp

run= secs=2 clients=1
for word in $(cat /proc/cmdline); do
    case $word in
    ptbench.run=*) run=${word#*=} ;;
    ptbench.secs=*) secs=${word#*=} ;;
    ptbench.clients=*) clients=${word#*=} ;;
    ptbench.marks=*) export PTBENCH_MARKS="${word#*=}" ;;
    ptbench.icount=*) export PTBENCH_ICOUNT="${word#*=}" ;;
    esac
done

if [ -z "$run" ]; then
    echo
    echo "$(uname -sr), $(nproc) CPUs: a shell in the guest; exit or poweroff -f ends it."
    setsid cttyhack sh
    poweroff -f
fi

run_dbench() {    # run_dbench CLIENTS
    mkdir -p /tmp/db
    ptmark -
    dbench -c /usr/share/dbench/client.txt -D /tmp/db -t "$secs" "$1" > /tmp/db.out 2>&1
    status=$?
    ptmark "dbench_${1}cl"
    rate=$(sed -n 's/^Throughput \([0-9.]*\) MB.*/\1/p' /tmp/db.out)
    # A run that is too short for its warm-up ends with status 0 and a rate of 0: that is no result.
    if [ $status = 0 ] && [ -n "$rate" ] && [ "${rate#0.0*}" = "$rate" ] && [ "$rate" != 0 ]; then
        echo "PTRES dbench ${1}_clients MB/s higher $rate"
    else
        echo "PTFAIL dbench $1 clients, exit $status: $(tail -n 1 /tmp/db.out)"
    fi
    rm -rf /tmp/db
}

stty -echo
# A PV guest has no 2 MiB pages: the guest without a hypervisor that it is compared with must not use them unasked.
echo madvise > /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null
echo "PTBEGIN cpus=$(nproc) kernel=$(uname -r) uptime=$(cut -d ' ' -f 1 /proc/uptime) mem=$(awk '/MemTotal/ { print $2 }' /proc/meminfo)"
for work in $(echo "$run" | tr : ' '); do
    case $work in
    dbench) for n in $(echo "$clients" | tr : ' '); do run_dbench "$n"; done ;;
    forkexec) ptfork "$(nproc)" "$secs" || echo "PTFAIL forkexec exit $?" ;;
    micro) ptmicro || echo "PTFAIL micro exit $?" ;;
    pte) ptpte || echo "PTFAIL pte exit $?" ;;
    storm) ptstorm "$(nproc)" || echo "PTFAIL storm exit $?" ;;
    idle) ;;
    *) echo "PTFAIL $work is no workload" ;;
    esac
done
dmesg | grep -E 'WARNING: CPU|BUG: |kernel BUG|Oops|[0-9]+ of [0-9]+ multicall|multicall\(s\) failed|detected stall|self-detected stall|soft lockup|hard LOCKUP|hung_task|blocked for more than|general protection|segfault|Call Trace|Out of memory' > /tmp/warnings
echo "PTWARN $(wc -l < /tmp/warnings)"
sed 's/^/PTLOG /' /tmp/warnings
echo PTEND
poweroff -f
