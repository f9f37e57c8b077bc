// Vectors and matrices of Eigen without copies. Needs libeigen3-dev.
//
// An Eigen::Map is a view of the joints in a plain struct, or of the elements of a tensor of any shape.
#include <rnet/msgs/plain.hpp>
#include <rnet/plain.hpp>
#include <rnet/rnet.hpp>

#include <Eigen/Core>

#include <iostream>

struct Joints {
    double position[6];
    double velocity[6];
};
RNET_PLAIN(Joints, position, velocity)

using Vector6 = Eigen::Matrix<double, 6, 1>;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Valid as long as the sample of the tensor, which has two dimensions of float without gaps in its rows.
Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> view_of(const rnet::msgs::Tensor& tensor) {
    const auto* elements = reinterpret_cast<const float*>(tensor.data.data());
    return {elements, tensor.shape[0], tensor.shape[1], Eigen::OuterStride<>(tensor.strides[0] / 4)};
}

int main() {
    rnet::Node node("eigen");
    auto joints = node.subscriber<Joints>("/joints");
    auto matrices = node.subscriber<rnet::msgs::Tensor>("/covariance");
    auto arm = node.publisher<Joints>("/joints");
    auto filter = node.publisher<rnet::msgs::Tensor>("/covariance");
    arm.wait_for_subscribers();
    filter.wait_for_subscribers();

    auto state = arm.loan();
    Eigen::Map<Vector6>(state->position).setLinSpaced(0, 5);
    Eigen::Map<Vector6>(state->velocity).setConstant(2);
    state.send();
    auto covariance = filter.loan_with(rnet::msgs::plain::TensorHeader::of<float>({64, 64}));
    Eigen::Map<Matrix>(reinterpret_cast<float*>(covariance.data().data()), 64, 64).setIdentity() *= 3;
    covariance.send();

    const auto arrived = joints.recv();
    const Eigen::Map<const Vector6> position(arrived->position), velocity(arrived->velocity);
    std::cout << "power: " << position.dot(velocity) << '\n';
    const auto tensor = matrices.recv();
    const auto matrix = view_of(*tensor);
    std::cout << matrix.rows() << " x " << matrix.cols() << ", trace " << matrix.trace() << '\n';
}
