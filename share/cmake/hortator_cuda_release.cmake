# A process has one CUDA runtime: the toolkit's major release must be that of LibTorch.

# Sets <out> to the major release of the CUDA runtime that the LibTorch in `root` loads; to nothing if that cannot be determined.
function(hortator_torch_cuda_major root out)
  set(${out} "" PARENT_SCOPE)
  find_program(HORTATOR_READELF NAMES "${CMAKE_READELF}" readelf NO_CACHE)
  foreach(library IN ITEMS torch_cuda c10_cuda)
    if(HORTATOR_READELF AND EXISTS "${root}/lib/lib${library}.so")
      execute_process(COMMAND "${HORTATOR_READELF}" -d "${root}/lib/lib${library}.so" OUTPUT_VARIABLE needed ERROR_QUIET)
      if(needed MATCHES "\\[libcudart\\.so\\.([0-9]+)")
        set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# Sets <out> to the reason why the toolkit does not match the LibTorch in `root`, with the way out, or to nothing.
function(hortator_cuda_misfit toolkit_version root out)
  set(${out} "" PARENT_SCOPE)
  hortator_torch_cuda_major("${root}" torch_major)
  string(REGEX MATCH "^[0-9]+" toolkit_major "${toolkit_version}")
  if(torch_major AND NOT torch_major EQUAL toolkit_major)
    set(${out} "the CUDA toolkit is ${toolkit_version}, but the LibTorch at ${root} was built with CUDA ${torch_major}, and a process cannot use two CUDA runtimes; load a module of CUDA ${torch_major} (or set CUDAToolkit_ROOT), or set LIBTORCH to a LibTorch for CUDA ${toolkit_major}" PARENT_SCOPE)
  endif()
endfunction()
