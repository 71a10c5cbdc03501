load plots . '/common.gp'
set title 'Resident memory of a rank (dashed: 16 MiB asked for)'
set logscale x 2
set xlabel 'ranks of the world'
set ylabel 'MiB'
set format x '%g'
set yrange [0:17<*]

plot for [i=1:3] rows('rank resident', word(modes, i)) using 6:($12/1024) with linespoints lw 2 pt 7 lc rgb color(i) title word(modes, i), \
     for [i=1:3] rows('rank resident; own memory', word(modes, i)) using 6:($12/1024) with linespoints dt 3 lw 2 pt 6 lc rgb color(i) title word(modes, i) . ', own memory', \
     16 with lines lw 2 dt 2 lc rgb '#555555' notitle
