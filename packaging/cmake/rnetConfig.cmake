# The CMake package of robot-net. Targets:
#
#   rnet::c, rnet::cpp                 the shared library, for C, and with the headers of C++17
#   rnet::c_static, rnet::cpp_static   the static library
#
# All paths are relative to this file. They are global targets, so that FetchContent can provide them.
if(TARGET rnet::c)
  return()
endif()

# The real path: /lib may be a link to /usr/lib.
get_filename_component(_rnet_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_rnet_lib "${_rnet_here}/../.." ABSOLUTE)
get_filename_component(_rnet_include "${_rnet_here}/@INCLUDE@" ABSOLUTE)

add_library(rnet::c SHARED IMPORTED GLOBAL)
set_target_properties(rnet::c PROPERTIES
  IMPORTED_LOCATION "${_rnet_lib}/librnet.so.1"
  IMPORTED_SONAME "librnet.so.1"
  INTERFACE_INCLUDE_DIRECTORIES "${_rnet_include}")

add_library(rnet::c_static STATIC IMPORTED GLOBAL)
set_target_properties(rnet::c_static PROPERTIES
  IMPORTED_LOCATION "${_rnet_lib}/librnet.a"
  INTERFACE_INCLUDE_DIRECTORIES "${_rnet_include}"
  INTERFACE_LINK_LIBRARIES "pthread;dl;m")

foreach(_rnet_kind "" "_static")
  add_library(rnet::cpp${_rnet_kind} INTERFACE IMPORTED GLOBAL)
  set_target_properties(rnet::cpp${_rnet_kind} PROPERTIES
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES rnet::c${_rnet_kind})
endforeach()

unset(_rnet_here)
unset(_rnet_lib)
unset(_rnet_include)
unset(_rnet_kind)
