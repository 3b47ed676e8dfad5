"""Small models in OpenSim's format, written for the tests."""


def hinge(*, wraps: str = "", muscle: str = "", path_wraps: str = "", forces: str = "", constraints: str = "") -> bytes:
    """An arm on a pin at the ground's origin, with one muscle from the ground to it. Version 4."""
    return f"""<?xml version="1.0" encoding="UTF-8" ?>
<OpenSimDocument Version="40000">
  <Model name="hinge">
    <Ground name="ground"><WrapObjectSet><objects>{wraps}</objects></WrapObjectSet></Ground>
    <gravity>0 -9.81 0</gravity>
    <BodySet><objects>
      <Body name="arm"><mass>1</mass><mass_center>0.2 0 0</mass_center><inertia>0.01 0.01 0.01 0 0 0</inertia></Body>
    </objects></BodySet>
    <JointSet><objects>
      <PinJoint name="elbow">
        <socket_parent_frame>ground</socket_parent_frame>
        <socket_child_frame>arm</socket_child_frame>
        <coordinates><Coordinate name="flexion"><range>-3 3</range></Coordinate></coordinates>
      </PinJoint>
    </objects></JointSet>
    <ConstraintSet><objects>{constraints}</objects></ConstraintSet>
    <ForceSet><objects>
      <Thelen2003Muscle name="flexor">
        <GeometryPath>
          <PathPointSet><objects>
            <PathPoint name="p1">
              <socket_parent_frame>/ground</socket_parent_frame><location>-0.1 0.3 0.02</location>
            </PathPoint>
            <PathPoint name="p2">
              <socket_parent_frame>/bodyset/arm</socket_parent_frame><location>0.2 0.01 0</location>
            </PathPoint>
          </objects></PathPointSet>
          <PathWrapSet><objects>{path_wraps}</objects></PathWrapSet>
        </GeometryPath>
        <max_isometric_force>500</max_isometric_force>
        <optimal_fiber_length>0.15</optimal_fiber_length>
        <tendon_slack_length>0.2</tendon_slack_length>
        {muscle}
      </Thelen2003Muscle>
      {forces}
    </objects></ForceSet>
  </Model>
</OpenSimDocument>
""".encode()


def surface(tag: str, sizes: str, *, at: str = "0 0 0", turned: str = "0.3 0.4 0.1", quadrant: str = "all") -> str:
    """A wrap object named `surface` on the ground."""
    return (
        f'<{tag} name="surface"><active>true</active><xyz_body_rotation>{turned}</xyz_body_rotation>'
        f"<translation>{at}</translation><quadrant>{quadrant}</quadrant>{sizes}</{tag}>"
    )


USED = '<PathWrap name="w"><wrap_object>surface</wrap_object><method>hybrid</method><range>-1 -1</range></PathWrap>'

PATH = """<GeometryPath><PathPointSet><objects>
<PathPoint name="a"><socket_parent_frame>/ground</socket_parent_frame><location>-0.1 0.2 0.05</location></PathPoint>
<PathPoint name="b"><socket_parent_frame>/bodyset/arm</socket_parent_frame><location>0.15 0.03 -0.02</location>
</PathPoint></objects></PathPointSet></GeometryPath>"""
FRAME = (
    '<PhysicalOffsetFrame name="{}"><socket_parent>{}</socket_parent><translation>{}</translation>'
    "<orientation>{}</orientation></PhysicalOffsetFrame>"
)
#: Passive forces of the arm, by their names.
FORCES = {
    "limit": """<CoordinateLimitForce name="limit"><coordinate>flexion</coordinate>
<upper_stiffness>20</upper_stiffness><upper_limit>30</upper_limit><lower_stiffness>10</lower_stiffness>
<lower_limit>-20</lower_limit><damping>0.5</damping><transition>15</transition></CoordinateLimitForce>""",
    "spring": """<SpringGeneralizedForce name="spring"><coordinate>flexion</coordinate><stiffness>3</stiffness>
<rest_length>0.2</rest_length><viscosity>0.7</viscosity></SpringGeneralizedForce>""",
    "formula": """<ExpressionBasedCoordinateForce name="formula"><coordinate>flexion</coordinate>
<expression>-2.5*q^3-0.3*qdot+exp(-q)</expression></ExpressionBasedCoordinateForce>""",
    "band": f"""<PathSpring name="band">{PATH}<resting_length>0.16</resting_length><stiffness>900</stiffness>
<dissipation>0.4</dissipation></PathSpring>""",
    "ligament": f"""<Ligament name="ligament">{PATH}<resting_length>0.16</resting_length>
<pcsa_force>150</pcsa_force></Ligament>""",
    "blankevoort": f"""<Blankevoort1991Ligament name="blankevoort">{PATH}<linear_stiffness>400</linear_stiffness>
<transition_strain>0.2</transition_strain><damping_coefficient>8</damping_coefficient>
<slack_length>0.16</slack_length></Blankevoort1991Ligament>""",
    "bushing": f"""<BushingForce name="bushing"><socket_frame1>one</socket_frame1><socket_frame2>two</socket_frame2>
<frames>{FRAME.format("one", "/ground", "0.1 0.05 0.02", "0.1 0.2 0.3")}
{FRAME.format("two", "/bodyset/arm", "0.12 0.02 0.01", "-0.2 0.1 0.05")}</frames>
<rotational_stiffness>2 3 4</rotational_stiffness><translational_stiffness>100 200 300</translational_stiffness>
<rotational_damping>0.2 0.3 0.4</rotational_damping><translational_damping>1 2 3</translational_damping>
</BushingForce>""",
}
