// Upgrades nets of formats before 2015 by Caffe's own functions: upgrade [IN OUT]...
//
// IN is text if it ends in .prototxt, else a caffemodel; OUT is always binary. Caffe aborts on what it refuses,
// so each file gets a process of its own; an OUT that is missing afterwards was refused.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <glog/logging.h>

#include "caffe/common.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/util/upgrade_proto.hpp"

namespace {

void upgrade(const std::string& in, const std::string& out) {
  const std::string ending = ".prototxt";
  const bool text = in.size() > ending.size() && in.compare(in.size() - ending.size(), ending.size(), ending) == 0;
  caffe::NetParameter net;
  if (text) {
    caffe::ReadNetParamsFromTextFileOrDie(in, &net);
  } else {
    caffe::ReadNetParamsFromBinaryFileOrDie(in, &net);
  }
  std::ofstream file(out, std::ios::binary);
  net.SerializeToOstream(&file);
}

}  // namespace

int main(int count, char** arguments) {
  google::InitGoogleLogging(arguments[0]);
  for (int i = 1; i + 1 < count; i += 2) {
    const pid_t child = fork();
    if (child == 0) {
      upgrade(arguments[i], arguments[i + 1]);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }
  return 0;
}
