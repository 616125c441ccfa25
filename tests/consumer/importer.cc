// Links the importer and asks it for a file that is not there. Knows no model.
#include <headway/error.h>
#include <headway/onnx.h>

int main() {
  try {
    headway::read_onnx("no such file.onnx");
  } catch (const headway::Error& error) {
    return error.code() == headway::ErrorCode::kIo ? 0 : 2;
  }
  return 1;
}
