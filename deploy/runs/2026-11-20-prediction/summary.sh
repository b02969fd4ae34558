#!/usr/bin/env bash
# Of each CSV: cases, and the median, 90th percentile and worst error, by tree and
# operation. An error is |predicted - measured median| in percent of the latter.
set -euo pipefail
cd "$(dirname "$0")"
percentiles='
    function show() {
        if (n) printf "| %s | %s | %d | %.1f %% | %.1f %% | %.1f %% |\n", place, key, n,
            v[int((n + 1) / 2)], v[int(n * 0.9 + 0.999)], v[n]
    }
    $1 != key { show(); key = $1; n = 0 }
    { v[++n] = $2 }
    END { show() }'
echo "| where | what | cases | median error | 90 % below | worst |"
echo "| --- | --- | --- | --- | --- | --- |"
for csv in "${@:-shaped.csv lab-rack.csv lab-tree.csv loopback.csv}"; do
    for file in $csv; do
        [ -e "$file" ] || continue
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
            { e = $c["error_pct"]; if (e < 0) e = -e
              print $c["operation"] " " $c["tree"] "\t" e; print "~all\t" e }' "$file" |
            LC_ALL=C sort -t "$(printf '\t')" -k1,1 -k2,2n |
            awk -F '\t' -v place="${file%.csv}" "$percentiles" | sed 's/~all/all/'
    done
done
