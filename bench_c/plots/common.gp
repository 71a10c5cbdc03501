# Shared by all plots: called with `results`, `plots` and `name` set (see bench_c/run).
# Columns: 1 bench 2 case 3 mode 7 threads 8 size 11 unit 12 median 13 q1 14 q3 15 p99 16 limit_name 17 limit 18 ratio
set datafile separator ','
if (!exists("term")) term = "svg"
if (term eq "svg") { set terminal svg size 1000,800 font 'sans-serif,14' background 'white' } else { set terminal pngcairo size 1000,800 font 'sans-serif,12' }
set output results . '/' . name . '.' . term
csv = results . '/' . name . '.csv'
# The rows of one case and mode (and unit).
rows(what, mode) = sprintf("< awk -F, -v w='%s' -v m='%s' '$2 == w && $3 == m' '%s'", what, mode, csv)
rows_of(what, mode, unit) = sprintf("< awk -F, -v w='%s' -v m='%s' -v u='%s' '$2 == w && $3 == m && $11 == u' '%s'", what, mode, unit, csv)
set grid back lc rgb '#dddddd'
set key below maxrows 2 samplen 2 font ',10'
modes = 'auto offload direct'
color(i) = word('#1b6ca8 #d1495b #3c9d5a', i)
# Tics of an axis of sizes in bytes.
set macros
size_tics = "set xtics ('8' 8, '64' 64, '512' 512, '4K' 4096, '32K' 32768, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216, '64M' 67108864) font ',10'"
