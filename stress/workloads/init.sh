#!/bin/sh
# SPDX-License-Identifier: MIT
# The guest's init: reads what to run from the kernel command line (ptbench.run=a:b ptbench.clients=N ptbench.secs=S),
# prints results as "PTRES workload metric unit better value" lines, and powers off.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp
mkdir -p /dev/shm
run= clients=1 secs=3
for w in $(cat /proc/cmdline); do
    case $w in
    ptbench.run=*) run=${w#*=} ;;
    ptbench.clients=*) clients=${w#*=} ;;
    ptbench.secs=*) secs=${w#*=} ;;
    esac
done
if [ -z "$run" ]; then
    echo "The guest's shell; poweroff -f ends it."
    setsid cttyhack sh
    poweroff -f
fi
echo "PTBEGIN cpus=$(grep -c ^processor /proc/cpuinfo) kernel=$(uname -r)"
for w in $(echo "$run" | tr : ' '); do
    case $w in
    dbench)
        mkdir -p /tmp/db
        dbench -c /usr/share/dbench/client.txt -D /tmp/db -t "$secs" "$clients" > /tmp/db.out 2>&1
        v=$(sed -n 's/^Throughput \([0-9.]*\) MB.*/\1/p' /tmp/db.out)
        if [ -n "$v" ]; then
            echo "PTRES dbench throughput MB/s higher $v"
        else
            echo "PTFAIL dbench $(tail -n 1 /tmp/db.out)"
        fi
        rm -rf /tmp/db
        ;;
    forkexec) ptfork "$clients" "$secs" || echo "PTFAIL forkexec exit $?" ;;
    micro) ptmicro || echo "PTFAIL micro exit $?" ;;
    pte) ptpte || echo "PTFAIL pte exit $?" ;;
    count) ptfork count "$clients" || echo "PTFAIL count exit $?" ;;
    *) echo "PTFAIL $w unknown workload" ;;
    esac
done
dmesg | grep -E 'WARNING|BUG: |Oops|multicall\(s\) failed|detected stall|soft lockup|Call Trace|general protection' > /tmp/warn
echo "PTWARN $(wc -l < /tmp/warn)"
sed 's/^/PTLOG /' /tmp/warn
echo PTEND
poweroff -f
