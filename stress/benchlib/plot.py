# SPDX-License-Identifier: MIT
"""OUT/results.png: throughput over vCPUs, one line a mode; made only where matplotlib is installed."""
import os


def plot(store, options, out):
    """Returns the file's path, or None when there is nothing to draw it with or from."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return None
    metrics = [m for m in store.metrics() if m[0] in ("forkexec", "dbench")]
    if not metrics or len(options.vcpus) < 2:
        return None
    columns = min(len(metrics), 4)
    rows = -(-len(metrics) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.6 * columns, 2.9 * rows), squeeze=False)
    for i, (workload, metric, unit, _) in enumerate(metrics):
        ax = axes[i // columns][i % columns]
        for mode in options.columns:
            points = [(n, store.median(workload, metric, unit, mode, n)) for n in options.vcpus]
            points = [p for p in points if p[1] is not None]
            if points:
                ax.plot(*zip(*points), marker="o", label=mode)
        ax.set_title("%s %s" % (workload, metric), fontsize=9)
        ax.set_xlabel("vCPUs")
        ax.set_ylabel(unit)
        ax.set_ylim(bottom=0)
        ax.set_xticks(options.vcpus)
        ax.legend(fontsize=7)
    for i in range(len(metrics), rows * columns):
        axes[i // columns][i % columns].axis("off")
    figure.tight_layout()
    path = os.path.join(out, "results.png")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
