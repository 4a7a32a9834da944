# The device headers as the target iket::device, and what lets others use them: headers, a CMake
# package (find_package(iket)) and a pkg-config file. The headers have no dependencies.
include(CMakePackageConfigHelpers)

add_library(iket_device INTERFACE)
add_library(iket::device ALIAS iket_device)
set_target_properties(iket_device PROPERTIES EXPORT_NAME device)
target_include_directories(iket_device INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
if(NOT EXISTS "${PROJECT_BINARY_DIR}/include")
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include" SYMBOLIC)
endif()

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/iket")
configure_package_config_file(cmake/iketConfig.cmake.in "${PROJECT_BINARY_DIR}/iketConfig.cmake"
                              INSTALL_DESTINATION "${package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/iketConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
configure_file(cmake/iket.pc.in "${PROJECT_BINARY_DIR}/iket.pc" @ONLY)

if(EXISTS "${PROJECT_SOURCE_DIR}/include/iket")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/iket"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT device
          FILES_MATCHING PATTERN "*.cuh" PATTERN "*.h" PATTERN "*.hpp")
endif()
install(TARGETS iket_device EXPORT iketTargets)
install(EXPORT iketTargets NAMESPACE iket:: DESTINATION "${package}" COMPONENT device)
install(FILES "${PROJECT_BINARY_DIR}/iketConfig.cmake" "${PROJECT_BINARY_DIR}/iketConfigVersion.cmake"
        DESTINATION "${package}" COMPONENT device)
install(FILES "${PROJECT_BINARY_DIR}/iket.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT device)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT device)
