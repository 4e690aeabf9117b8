# Of the files on standard input ("FILE:#include ..." lines), those that reach neither LibTorch nor MPI, HDF5, CUDA or a library that a
# cross-compiler has not: FILE, one a line, also of files that include nothing.
function is_foreign(header) {
  return header ~ /^(ATen|c10|torch|boost|nlohmann|yaml-cpp)\// || header ~ /^(mpi|hdf5|nccl|png|jpeglib|nvml|cupti|cuda[a-z_]*)\.h$/ ||
         header == "hortator/version.hpp"  # is made by the configuration
}
function reaches(file,   i, n, list) {
  if (file in known) return known[file]
  known[file] = foreign[file] + 0  # headers that include each other end here
  n = split(includes[file], list, " ")
  for (i = 1; i <= n && !known[file]; i++) if (reaches(list[i])) known[file] = 1
  return known[file]
}
{
  file = $0; sub(/:.*/, "", file)
  files[file] = 1
  header = $0; sub(/^[^:]*:[^<"]*[<"]/, "", header); sub(/[>"].*/, "", header)
  if ($0 !~ /# *include/) next
  if (is_foreign(header)) foreign[file] = 1
  else if (header ~ /^hortator\//) includes[file] = includes[file] " include/" header
  else if (header ~ /\//) includes[file] = includes[file] " src/" header
}
END { for (file in files) if (!reaches(file)) print file }
